"""What an implementation can do, as --require says it."""

import pytest
from msgspec import UNSET
from msgspec.structs import replace
from support.judged import CORE
from support.tables import every

from rnncli.errors import InvalidRequest
from rnncli.judging.comparing.requirements import (
    ELSEWHERE,
    FIELDS,
    NEVER,
    Requirements,
    leaving_out,
)
from rnncli.operators import OPERATORS
from rnncli.packs.pack import open_pack
from rnncli.packs.record import UNKNOWN, RequirementsRecord

RECORD = replace(
    UNKNOWN,
    operator="LSTM-14",
    attributes={"clip": 2.5, "hidden_size": 70},
    outputs=["Y", "Y_h"],
    flags=["Clip"],
    sizes={"seq_length": 4, "batch_size": 3, "input_size": 2, "hidden_size": 70},
    requirements=RequirementsRecord(
        opset=14,
        dtype="float32",
        direction="reverse",
        layout=1,
        attributes=["clip", "hidden_size"],
        activations=["Sigmoid", "Tanh"],
        inputs=["B", "P"],
        weights="inputs",
        largest_size=70,
    ),
)

# Cases of every dialect, of quantised units and of linear recurrences.
RECORDS = [
    record
    for pack in ("core", "tiles", "units", "linear", "tflite", "webnn_tiles", "openvino_tiles")
    for record in open_pack(CORE.with_name(pack)).manifest.cases
]

MET = [
    "opset<=14",
    "opset>=14",
    "opset<15",
    "opset>13",
    "opset=14",
    "opset==14",
    "opset=7|014|22",
    "opset!=22",
    "dtype=float32",
    "dtype=float16|float32",
    "dtype!=float16|bfloat16",
    "direction!=bidirectional",
    "layout=1",
    "activations=Tanh|Sigmoid|Relu",
    "activations!=Relu",
    "inputs=B|P|sequence_lens",
    "inputs!=initial_h",
    "attributes!=input_forget",
    "operator=LSTM-14|GRU-14",
    "outputs=Y|Y_h|Y_c",
    "outputs!=Y_c",
    "hidden_size<=70",
    "largest_size<=70",
    "weights=inputs",
    "domain=",
    "expect=result",
    "tags!=non-portable",
    "tags=",
    " opset <= 14 , dtype = float32 ",
    "op=LSTM|GRU",
    "version>=14",
    "clip=2.5|never",
    "clip<=2.5",
    "clip=25e-1",
    "input_zero_point>=-128",
    "input_forget=0",
    "linear_before_reset=1",
    "gate_order=zrn",
    "hidden_size%16=6",
    "hidden_size%2=0",
    "input_size+hidden_size<=72",
    "input_size+hidden_size%8=0",
    "inputs>=P",
    "inputs>=B|P",
    "outputs==Y|Y+Y_h",
    "outputs==Y_h+Y",
    "activations[LSTM]=Sigmoid|Tanh",
    "activations[RNN]=Relu",
    "hidden_size%16[GRU]=0",
    "calls=1",
    "open_sizes=0",
]
# expression -> why the record does not meet it
UNMET = {
    "opset<=13": "requires opset <= 13, has 14",
    "opset>14": "requires opset > 14, has 14",
    "opset!=14": "requires opset other than 14, has 14",
    "opset=7|22": "requires opset 7 or 22, has 14",
    "dtype=float16": "requires dtype float16, has float32",
    "dtype!=float32": "requires dtype other than float32, has float32",
    "activations=Tanh|Relu": "requires activations only Tanh or Relu, has Sigmoid",
    "activations!=Tanh|Relu": "requires activations without Tanh or Relu, has Tanh",
    "inputs!=P|B": "requires inputs without P or B, has B, P",
    "attributes!=clip": "requires attributes without clip, has clip",
    "domain!=": "requires domain other than '', has ''",
    "domain=ai.onnx": "requires domain ai.onnx, has ''",
    "op=GRU|RNN": "requires op GRU or RNN, has LSTM",
    "clip=never": "requires clip never, has 2.5",
    "clip<2.5": "requires clip < 2.5, has 2.5",
    "input_forget=1": "requires input_forget 1, has 0",
    "hidden_size%16=0": "requires hidden_size a multiple of 16, has 70",
    "input_size+hidden_size<=64": "requires input_size+hidden_size <= 64, has 72",
    "inputs>=P|initial_h": "requires inputs with P and initial_h, lacks initial_h",
    "outputs==Y|Y+Y_h+Y_c": "requires outputs exactly Y or Y+Y_h+Y_c, has Y, Y_h",
    "outputs==none": "requires outputs exactly none, has Y, Y_h",
    "activations[LSTM]=Tanh": "requires activations[LSTM] only Tanh, has Sigmoid",
    "X.type=uint8": "requires X.type uint8, but the case has no X.type",
    "opset<=13,layout=0": "requires opset <= 13, has 14; requires layout 0, has 1",
}
# expression -> what is wrong with it
WRONG = {
    "": "'' is not FIELD=VALUE, such as opset<=14",
    "opset": "'opset' is not FIELD=VALUE",
    "opset=<14": "'opset' is compared with a whole number, got '<14'; write opset<=14",
    "H<=8": "unknown field 'H'; H is written hidden_size",
    "opset<=14,": "'' is not FIELD=VALUE",
    "opst<=14": "unknown field 'opst'; did you mean 'opset'?",
    "=14": "unknown field ''; there are operator, op, version, opset,",
    "opset<=x": "'opset' is compared with a whole number, got 'x'",
    "opset<=-1": "'opset' is compared with a whole number, got '-1'",
    "opset<=1e3": "'opset' is compared with a whole number, got '1e3'",
    f"opset<={'9' * 99}": "'opset' is compared with a whole number",
    "opset<=7|14": "'opset' is compared with one number; write opset=7|14",
    "dtype<=float32": "'dtype' is not a number; write dtype=float32",
    "dtype=float23": "'dtype' is never 'float23'; did you mean 'float32'?",
    "dtype=float": "'dtype' is never 'float'; did you mean 'float32'?",
    "dtype=half": "'dtype' is never 'half'; did you mean 'float16'?",
    "attributes=hiddensize": (
        "'attributes' is never 'hiddensize'; did you mean 'hidden_size'? It is a field of its own,"
    ),
    "operator=RNN": (
        "'operator' is never 'RNN'; there are RNN-1, RNN-7, RNN-14, RNN-22, and op=RNN is all of"
    ),
    "operator=GRU-2": "'operator' is never 'GRU-2'; there are GRU-1, GRU-3, GRU-7, GRU-14,",
    "dtype=float32 opset=14": "'dtype' is never 'float32 opset=14'; terms are joined by commas",
    "dtype=": "'dtype' is never ''; there are",
    "activations=tanh": "'activations' is never 'tanh'; did you mean 'Tanh'?",
    "inputs!=Q": "'inputs' is never 'Q'; there are",
}


@every("expression", MET)
def test_what_is_met_gives_no_reason(expression):
    """Every kind of field with every operator it has; spaces mean nothing."""
    assert Requirements.parse([expression]).reason(RECORD) == ""


@pytest.mark.parametrize("expression", UNMET)
def test_what_is_not_met_is_said(expression):
    """With what is required, and what the case has."""
    assert Requirements.parse([expression]).reason(RECORD) == UNMET[expression]


@pytest.mark.parametrize("expression", WRONG)
def test_what_is_no_requirement_is_refused(expression):
    """A misspelling must not skip every case, or none."""
    with pytest.raises(InvalidRequest) as raised:
        Requirements.parse([expression])

    assert str(raised.value).startswith(f"cannot require '{expression}': {WRONG[expression]}")


def test_expressions_add_up():
    """The option may be given again."""
    both = Requirements.parse(["opset<=13", "layout=0"])

    assert both.reason(RECORD) == UNMET["opset<=13,layout=0"]
    assert Requirements.parse([]).reason(RECORD) == ""


@pytest.mark.parametrize(
    "is_refused",
    [
        lambda needs: needs.layout == 1,
        lambda needs: needs.dtype == "float64" or needs.layout == 1,
        lambda needs: needs.opset in {1, 22},
        lambda needs: "clip" in needs.attributes,
        lambda needs: needs.direction != "forward",
    ],
)
def test_what_is_refused_can_be_left_out(is_refused):
    """Of a real pack: all that lack one thing are left out, and nothing that is kept."""
    records = open_pack(CORE).manifest.cases
    refused = [record for record in records if is_refused(record.requirements)]
    kept = [record for record in records if record not in refused]
    found = Requirements.parse([leaving_out(refused, kept).expression])

    assert [record.id for record in refused if not found.reason(record)] == []
    assert [record.id for record in kept if found.reason(record)] == []


LINEAR_LIMITS = {
    "update_rule!=linear|gated": "update_rule!=linear|gated",
    "decay_form!=per_key": "decay_form!=per_key",
    "mixed_dtypes=0": "mixed_dtypes!=1",
    "group_size=1": "group_size!=2|3|4",
    "activation!=silu": "activation!=silu",
}


@every("limit, told", LINEAR_LIMITS.items())
def test_what_linear_recurrences_lack_has_its_own_fields(limit, told):
    """Their rules, forms and heads are not said by inputs that happen to be there."""
    records, needs = open_pack(CORE.parent / "linear").manifest.cases, Requirements.parse([limit])
    refused = [record for record in records if needs.reason(record)]

    found = leaving_out(refused, [record for record in records if record not in refused])

    assert found == Requirements.parse([told])


@every("has", [lambda r: r.requirements.layout == 1, lambda r: "Clip" in r.flags])
def test_all_cases_are_left_out_if_asked_for(has):
    """By flags, too; a single one as well, and then others with it."""
    records = open_pack(CORE).manifest.cases
    refused = [record for record in records if has(record)]
    kept = [record for record in records if not has(record)]
    found = leaving_out(refused, kept, entirely=True)
    single = leaving_out(refused[:1], [*refused[1:], *kept], entirely=True)

    assert [record.id for record in records if found.reason(record)] == [
        record.id for record in refused
    ]
    assert single.reason(refused[0])
    assert sum(bool(single.reason(record)) for record in records) < 60


def test_blanks_take_no_time():
    """Anyone may write a requirement; in a tenth of this text an older one took minutes."""
    for text in ("flags=" + " " * 80_000 + "x\ny", " " * 80_000, "layout" + " " * 80_000):
        with pytest.raises(InvalidRequest, match="is not FIELD=VALUE"):
            Requirements.parse([text])


def test_what_others_need_as_well_is_not_left_out():
    """Of cases that differ in nothing, or in one case only, there is no requirement."""
    records = open_pack(CORE).manifest.cases[:1]

    assert leaving_out(records, records).expression == ""
    assert leaving_out(records, []).expression == ""


# Of operators of which no pack is committed, and of keys that only these share.
COMMITTED = {record.operator for record in RECORDS}
ABSENT = {
    name for row in OPERATORS.values() if row.name not in COMMITTED for name in row.attributes
}
UNCOMMITTED = {
    "bias_form",
    "dilation",
    "key_form",
    "output_size",
    "total_tokens",
} | ABSENT.difference(*(row.attributes for row in OPERATORS.values() if row.name in COMMITTED))


@pytest.mark.parametrize("name", [name for name in FIELDS if name not in UNCOMMITTED])
def test_every_field_is_of_its_kind(name):
    """In every case of the packs, and with no value that could not be required."""
    row, kinds = FIELDS[name], {"number": int, "decimal": int | float, "word": str, "words": list}
    found = [row.of(record, call) for record in RECORDS for call in record.calls]
    has = [each for each in found if each not in (None, NEVER, ELSEWHERE)]

    assert has
    for each in has:
        values = each if isinstance(each, list) else [each]
        assert isinstance(each, kinds[row.kind]) or all(isinstance(v, int | float) for v in values)
        assert not row.values or {str(value) for value in values} <= set(row.values)


ATTENTION = replace(
    RECORD,
    operator="LinearAttention-27",
    attributes={"q_num_heads": 4, "kv_num_heads": 2},
    sizes={"q_num_heads": 4, "kv_num_heads": 2, "key_size": 64, "value_size": 8},
    requirements=replace(
        RECORD.requirements,
        dtype="float16",
        inputs=["past_state", "decay"],
        forms={"states_dtype": "float32", "decay_form": "per_key"},
    ),
)
OF_ATTENTION = {
    # A requirement -> why a linear attention does not meet it; "" if it does
    "key_size=64|128": "",
    "key_size+value_size<=64": "requires key_size+value_size <= 64, has 72",
    "group_size=2, share_size=1": "",
    "group_size=1": "requires group_size 1, has 2",
    "update_rule=delta": "requires update_rule delta, has gated_delta",
    "decay_form=per_head": "requires decay_form per_head, has per_key",
    "beta_form=shared, key_form=shared": "",  # it has neither
    "states_dtype=float16": "requires states_dtype float16, has float32",
    "mixed_dtypes=0": "requires mixed_dtypes 0, has 1",
    "hidden_size<=4, kernel_size=4, activation=silu": "",  # those of other operators
}


@every("requirement, reason", OF_ATTENTION.items(), ids=str)
def test_a_linear_recurrence_is_met_by_fields_of_its_own(requirement, reason):
    """Sizes, rules, forms and types; of what it has not, all values are met."""
    assert Requirements.parse([requirement]).reason(ATTENTION) == reason


def test_a_pack_of_an_earlier_version_does_not_say_what_its_forms_are():
    """What it does not say is not assumed."""
    early = replace(ATTENTION, requirements=replace(ATTENTION.requirements, forms=UNSET))

    found = Requirements.parse(["decay_form=per_key"]).reason(early)
    assert found == "requires decay_form per_key, but the case has no decay_form"


def test_a_case_that_does_not_say_is_not_tried():
    """A record has the sizes that its operator has; what is not known is not assumed."""
    found = Requirements.parse(["input_size<=14"]).reason(replace(RECORD, sizes={}))

    assert found == "requires input_size <= 14, but the case has no input_size"

"""Claims about moved cases: within what a device takes, and as near as that allows."""

import pytest
from support.tables import every

from rnncli.cases.suite.suite import load_suite
from rnncli.generating.moving import Unmoved, moved, nearest_sizes
from rnncli.generating.tailoring import record_of
from rnncli.judging.comparing.requirements import Requirements
from rnncli.operators import operator_named

CASE = {
    "op": "LSTM-14",
    "sizes": {"seq_length": 5, "batch_size": 3, "input_size": 3, "hidden_size": 5},
    "dtype": "float32",
    "attributes": {
        "direction": "bidirectional",
        "clip": 2.0,
        "activations": ["HardSigmoid", "Tanh", "Tanh", "Sigmoid", "LeakyRelu", "Tanh"],
        "activation_alpha": [0.25, 0.5],
        "activation_beta": [0.4],
    },
    "inputs": {"B": "uniform", "P": "uniform", "sequence_lens": [5, 0, 2]},
    "outputs": ["Y", "Y_h", "Y_c"],
    "weights": "inputs",
    "calls": 2,
}


def at(case, path):
    """What a case has somewhere; None if nothing."""
    for name in path.split("."):
        case = (case or {}).get(name)
    return case


MOVES = {
    # A requirement -> where the case changes, and to what
    "version=7": ("op", "LSTM-7"),
    "opset>=22": ("op", "LSTM-22"),
    "dtype=float16": ("dtype", "float16"),
    "direction=reverse": ("attributes.direction", "reverse"),
    "direction=forward": ("attributes.direction", None),
    "clip=never": ("attributes.clip", None),
    "attributes!=clip": ("attributes.clip", None),
    "clip=never|0.5": ("attributes.clip", None),
    "clip=0.5": ("attributes.clip", 0.5),
    "input_forget=1": ("attributes.input_forget", 1),
    "layout=1": ("attributes.layout", 1),
    "inputs!=P": ("inputs.P", None),
    "inputs>=initial_h": ("inputs.initial_h", "uniform"),
    "outputs==Y_h+Y_c": ("outputs", ["Y_h", "Y_c"]),
    "outputs=Y": ("outputs", ["Y"]),
    "weights=initializers": ("weights", "initializers"),
    "calls=1": ("calls", 1),
    "open_sizes=1": ("open_sizes", True),
    "hidden_size%16=0": ("sizes.hidden_size", 16),
    "hidden_size<=4": ("sizes.hidden_size", 3),
    "input_size+hidden_size<=6": ("sizes.hidden_size", 3),
    "batch_size=1": ("inputs.sequence_lens", [5]),
    "batch_size=2,seq_length=10": ("inputs.sequence_lens", [10, 0]),
    "activations=Sigmoid|Tanh": ("attributes.activations", None),
    "attributes!=activations": ("attributes.activation_alpha", None),
    "activations==Sigmoid+Tanh": ("attributes.activations", None),
}


@every("requirement, there", MOVES.items(), ids=str)
def test_what_a_device_lacks_goes_and_the_rest_stays(requirement, there):
    """To the nearest that it takes."""
    path, value = there
    case = moved(CASE, Requirements.parse([requirement]))

    assert at(case, path) == value
    assert CASE["sizes"]["hidden_size"] == 5  # the case itself is as it was
    parts = {name for name in CASE if case[name] != CASE[name]}
    assert parts <= {path.partition(".")[0], "sizes", "attributes", "inputs"}


def test_lists_of_one_direction_are_those_of_its_functions():
    """Alpha and beta of the direction that is gone would be taken for others."""
    case = moved(CASE, Requirements.parse(["direction=forward"]))

    assert case["attributes"]["activations"] == ["HardSigmoid", "Tanh", "Tanh"]
    assert case["attributes"]["activation_alpha"] == [0.25]
    assert case["attributes"]["activation_beta"] == [0.4]


ATTENTION = {
    "op": "LinearAttention-27",
    "sizes": {
        "seq_length": 5,
        "batch_size": 3,
        "q_num_heads": 4,
        "kv_num_heads": 2,
        "key_size": 3,
        "value_size": 2,
    },
    "dtype": "float32",
    "attributes": {},
    "inputs": {"decay": "uniform", "beta": "uniform"},
    "outputs": ["output", "present_state"],
    "weights": "inputs",
    "calls": 1,
}
OF_ATTENTION = {
    "update_rule=delta": ("inputs", {"beta": "uniform"}),
    "inputs!=decay": ("attributes.update_rule", "linear"),
    "states_dtype=float16": ("inputs.past_state", "normal"),
    "dtype=float16,states_dtype=float32": ("states_dtype", None),  # which is the usual one
    "dtype=float16,mixed_dtypes=0": ("inputs.past_state", None),
    "mixed_dtypes=1": ("states_dtype", "float16"),
    "decay_form=per_key": ("decay_form", "per_key"),
    "group_size=1": ("sizes.q_num_heads", 2),
    "kv_num_heads=3": ("sizes.q_num_heads", 3),
    "q_num_heads=1": ("sizes.kv_num_heads", 1),
    "key_size=64": ("inputs.key", {"normal": [0, 0.125]}),
}


@every("requirement, there", OF_ATTENTION.items(), ids=str)
def test_a_linear_attention_keeps_the_rules_of_its_operator(requirement, there):
    """Inputs are those of the update rule, heads are multiples, and keys no longer than before."""
    path, value = there
    needs = Requirements.parse([requirement])
    case = moved(ATTENTION, needs)

    assert at(case, path) == value
    assert not needs.reason(record_of(entry_of(load_suite("linear"), {**case, "flags": []})))


REMAINDERS = {
    # size, what is taken -> the nearest: a remainder stays one, a boundary stays one
    (17, "hidden_size<=16"): 15,
    (16, "hidden_size<=12"): 12,
    (33, "hidden_size%2=0"): 34,
    (1, "hidden_size>=4"): 5,
    (64, "hidden_size<=40"): 32,
    (300, "hidden_size%16=0,hidden_size<=256"): 240,
}


@every("asked, wanted", REMAINDERS.items(), ids=str)
def test_sizes_stay_what_a_kernel_takes_them_for(asked, wanted):
    """One, a multiple or not, beyond an edge or not: where the device has any."""
    size, requirement = asked
    row = operator_named("LSTM-14")
    before = {"seq_length": 2, "batch_size": 2, "input_size": 2, "hidden_size": size}

    found = nearest_sizes(Requirements.parse([requirement]), row, before)
    assert found == {**before, "hidden_size": wanted}


REFUSED = {
    "op=GRU": "no version of LSTM",
    "dtype=bfloat16,version=14": "no version of LSTM",
    "outputs==none": "no outputs that it takes",
    "activations=Affine,activations!=Affine": "no activation that it takes",
    "hidden_size<1": "no sizes that it takes",
    "largest_size<1": "no sizes that it takes",
}


@every("requirement, reason", REFUSED.items(), ids=str)
def test_a_case_with_nothing_near_is_left_out_with_the_reason(requirement, reason):
    """As a case without that would be another."""
    with pytest.raises(Unmoved, match=reason):
        moved(CASE, Requirements.parse([requirement]))


DEVICES = {
    "core": "op=LSTM|GRU|RNN,hidden_size%4=0,seq_length<=3,batch_size=1,clip=never,dtype=float32",
    "units": "hidden_size<=4,weights=initializers,X.type=uint8,Y.type=uint8",
    "webnn_tiles": "hidden_size<=16,batch_size<=4,dtype=float16,activations=Tanh|Sigmoid",
    "openvino_tiles": "direction=forward,input_size+hidden_size<=24",
    "quantised_tiles": "hidden_size%8=0,batch_size<=2,inputs!=sequence_lens",
    "linear": "update_rule=gated|delta,dtype=float16,mixed_dtypes=0,key_size%16=0,seq_length<=4",
    "linear_tiles": "op=LinearAttention,decay_form=per_key,inputs>=past_state,group_size=2",
    "linear_contrib": "states_dtype=float32,dtype=bfloat16,share_size=2,dilation=1,activation=silu",
}


@every("name, requirement", DEVICES.items())
def test_moved_cases_of_every_dialect_are_taken(name, requirement):
    """By the record that a pack would have of them, in every call."""
    suite, needs = load_suite(name), Requirements.parse([requirement])
    taken = 0
    for entry in suite.entries[:: max(1, len(suite.entries) // 25)]:
        try:
            case = moved(entry.written, needs)
        except Unmoved:
            continue
        assert not needs.reason(record_of(entry_of(suite, case))), entry.id
        taken += 1
    assert taken >= 10


def entry_of(suite, case):
    """The entry of a case in a suite by itself."""
    import json

    from rnncli.cases.suite.suite import parse_suite

    told = {
        "suite": "one",
        "summary": "One case.",
        "notes": dict.fromkeys(case["flags"], "a bug"),
        "cases": {"one": case},
    }
    return parse_suite(json.dumps(told), "one.yaml", suite.folder).entries[0]

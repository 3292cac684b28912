"""Claims: what an implementation says that it computes right, as a file of one record.

A claim is YAML, which `rnncli claims` writes and `rnncli verify --claims` judges:

    implementation: "onnxruntime 1.32.0"
    pack: "core"
    digest: "8ba6cfbb5af7..."
    cases: 109
    require:
      - "dtype!=bfloat16|float64"
      - "layout!=1"
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from rnncli.cases.yaml_reader import Findings, parse_yaml, read_mapping, read_source
from rnncli.errors import InvalidRequest
from rnncli.files.described import (
    UNIQUE,
    Digits,
    Distinct,
    RecordT,
    check,
    document,
    own_type,
    read,
)
from rnncli.judging.comparing.requirements import Requirements
from rnncli.talk.words import counted, visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rnncli.cases.yaml_reader import YamlNode

LONGEST_NAME = 300
LONGEST_REQUIREMENT, MOST_REQUIREMENTS = 4000, 64
DIGITS_SHOWN = 12


def _requirement(text: str) -> str:
    if len(text) > LONGEST_REQUIREMENT:
        raise ValueError(f"must have at most {LONGEST_REQUIREMENT} characters")
    try:
        Requirements.parse([text])
    except InvalidRequest as error:
        raise ValueError(str(error)) from None
    return text


if TYPE_CHECKING:
    RequirementText = str
else:
    RequirementText = own_type(
        "RequirementText",
        str,
        str,
        _requirement,
        {"format": "rnncli-requirement", "maxLength": LONGEST_REQUIREMENT},
    )
"""A requirement as `--require` takes it."""
RequirementTexts = Annotated[list[RequirementText], UNIQUE, Meta(max_length=MOST_REQUIREMENTS)]


class Claim(Distinct):
    """What an implementation claims to compute right: cases of one pack, all of them answered."""

    implementation: Annotated[
        str, Meta(max_length=LONGEST_NAME), "the name and version of what claims it, in any words"
    ]
    pack: Annotated[str, Meta(max_length=LONGEST_NAME), "the name of the pack's suite"]
    digest: Annotated[Digits, "the digest of the pack, which covers every file"]
    cases: Annotated[
        int, Meta(ge=1), "the number of cases inside the claim, so that it cannot shrink unseen"
    ]
    require: Annotated[
        RequirementTexts,
        "what a case inside the claim meets, each as `--require` takes it; empty for all cases",
    ]

    def described(self, counts: str = "") -> str:
        """Return the pack in words, with counts: "core, 109 of 109, digest 8ba6cfbb5af7"."""
        parts = (self.pack, counts, f"digest {self.digest[:DIGITS_SHOWN]}")
        return visible(", ".join(filter(None, parts)))

    def mismatch(self, pack: str, digest: str, cases: int) -> str:
        """Return why a number of cases of a pack is not what is claimed, or ""."""
        if (pack, digest) != (self.pack, self.digest):
            found = f"{pack}, digest {digest[:DIGITS_SHOWN] or 'not verified'}"
            return f"the claim is on {self.described()}, and this is {visible(found)}"
        if cases != self.cases:
            return f"the claim has {counted(self.cases, 'case')}, found {cases}"
        return ""

    @property
    def text(self) -> str:
        """The claim as YAML, which `parse_claim` reads."""
        return entries_written(self)


def entries_written(record: Distinct, comments: Mapping[str, Sequence[str]] | None = None) -> str:
    """Return a record as YAML, which `entries_read` reads, with comments above items of lists."""
    lines = []
    for name, value in msgspec.to_builtins(record).items():
        # JSON is YAML, which a digest like 1e5 must not be read as.
        if isinstance(value, list) and value:
            lines.append(f"{name}:")
            for each in value:
                lines += [f"  # {words}" for words in (comments or {}).get(each, ())]
                lines.append(f"  - {json.dumps(each, ensure_ascii=False)}")
        else:
            lines.append(f"{name}: {json.dumps(value, ensure_ascii=False)}")
    return "".join(f"{line}\n" for line in lines)


def is_claim(root: YamlNode) -> bool:
    """Whether YAML is a claim, as opposed to a suite or a config."""
    return root.child("implementation") is not None


def read_claim(path: Path) -> Claim:
    """Read a claim.

    Raises:
        rnncli.errors.UnreadableFile: it cannot be read.
        rnncli.errors.ConfigError: it is not a claim; every finding has its place.
    """
    return parse_claim(read_source(path), str(path))


def parse_claim(source: bytes | str, name: str) -> Claim:
    """Read the text of a claim; `name` is its file in messages.

    Raises:
        rnncli.errors.ConfigError: it is not a claim; every finding has its place.
    """
    return entries_read(parse_yaml(source, name), Claim, "a claim")


def entries_read(root: YamlNode, kind: type[RecordT], what: str) -> RecordT:
    """Read YAML as a record, all of whose entries must be there.

    Raises:
        rnncli.errors.ConfigError: it is not one; every finding has its place, of lists that of the
            item.
    """
    findings = Findings()
    rows = {row.name: row.type for row in msgspec.structs.fields(kind)}
    entries = read_mapping(root, what, "key", rows, findings)
    for missing in [key for key in rows if entries and key not in entries]:
        findings.add(root.place, f"'{missing}' is missing")
    for key, node in entries.items():
        # Of a list, each item for itself, whose place is its own; what is left is about the list.
        items = node.value if isinstance(node.value, tuple) else ()
        parts = [(item.place, f"'{key}'[{k}]", [item.plain]) for k, item in enumerate(items)]
        wrong = len(findings)
        for place, called, plain in (*parts, (node.place, f"'{key}'", node.plain)):
            if place is node.place and len(findings) > wrong:
                break
            try:
                check(plain, rows.get(key, Any), f"'{key}'")
            except InvalidRequest as error:
                sentence = str(error).replace(f"'{key}'[0]", called, 1)
                if "cannot require" in sentence:  # what it got is in the sentence already
                    sentence, _, _ = sentence.rpartition(", got ")
                findings.add(place, sentence)
    findings.raise_any()
    found: RecordT = read(root.plain, kind, root.place.file)
    return found


def claim_schema() -> dict[str, Any]:
    """Return the JSON Schema of a claim, draft 2020-12."""
    return document(Claim, "rnncli claim", "What `rnncli verify --claims` judges.")

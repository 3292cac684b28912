"""What `verify --json` and `relate --json` print, by the schema of such lines."""

import json
from functools import cache

from jsonschema.validators import validator_for

from rnncli.reports.verification_schema import verification_schema


def valid_records(text):
    """Return the records of lines, each of which fits the schema."""
    records = [json.loads(line) for line in text.splitlines()]
    for record in records:
        _validator().validate(record)
    return records


@cache
def _validator():
    """Read the schema and check it once, which takes longer than a record."""
    schema = verification_schema()
    validator_for(schema).check_schema(schema)
    return validator_for(schema)(schema)

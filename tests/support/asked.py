"""The arguments of a run from flat options, as a command line has them."""

import rnncli
from rnncli.options import traits_of

VALUES = {"workers": rnncli.Workers, "rule": rnncli.Rule, "cases": rnncli.Selected}


def asked(options):
    """Options of `verify` by name, with those of a class as a value of it."""
    left = dict(options)
    made = {
        name: made(**{each: left.pop(each) for each in traits_of(made) if each in left})
        for name, made in VALUES.items()
    }
    return {**made, **left}


def verified(pack, verify=rnncli.verify, **options):
    """The report of a run; the implementation is among the options."""
    limits = {each: options.pop(each) for each in traits_of(rnncli.Limits) if each in options}
    names = [*traits_of(rnncli.Implementation), "function"]
    own = {each: options.pop(each) for each in names if each in options}
    subject = rnncli.Implementation(**own, limits=rnncli.Limits(**limits))
    return verify(pack, subject, **asked(options))

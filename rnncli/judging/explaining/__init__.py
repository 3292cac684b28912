"""Explaining wrong outputs: localisation, hypotheses and the diagnosis of a whole pack."""

"""All kinds of guards, by the names under which they are used."""

from __future__ import annotations

from .composite import (
    CONTAINERS,
    Cache,
    Distinct,
    Function,
    Instance,
    Items,
    Parts,
    Selected,
    changes_at,
    distinct_pairs,
    field,
    is_same_key,
    results_of,
)
from .guard import Change, Guard, Look, UnwrittenError, difference, difference_of_forms, form_of, reached
from .plain import Array, Captured, Fresh, Given, Identity, Namespace, Overwritten, Plain, Promoted, Refused, Stateful

__all__ = [
    "Array",
    "CONTAINERS",
    "Cache",
    "Captured",
    "Change",
    "Distinct",
    "Fresh",
    "Function",
    "Given",
    "Guard",
    "Identity",
    "Instance",
    "Items",
    "Look",
    "Namespace",
    "Overwritten",
    "Parts",
    "Plain",
    "Promoted",
    "Refused",
    "Selected",
    "Stateful",
    "UnwrittenError",
    "changes_at",
    "difference",
    "difference_of_forms",
    "distinct_pairs",
    "field",
    "form_of",
    "is_same_key",
    "reached",
    "results_of",
]

"""The environment variables of a plan with the values of their placeholders and secrets."""

from __future__ import annotations

from collections.abc import Mapping

from ..step.plan import Environment
from ..step.secret_values import SecretValues
from .placeholders import fill_placeholders


def fill_variables(
    env: Environment, placeholders: Mapping[str, object], secrets: SecretValues
) -> dict[str, str]:
    """Return the variables; braces in the value of a secret stay as they are."""
    return {
        key: fill_placeholders([value], placeholders)[0]
        if isinstance(value, str)
        else secrets.values[value.name]
        for key, value in env.items()
    }

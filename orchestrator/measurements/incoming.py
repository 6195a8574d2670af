"""The schema of a finished result as a client sends it, checked before any name is looked up."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from orchestrator.core.storable_text import StorableLine, StorableText
from orchestrator.loadtools.metrics import find_metric

#: The number of results in a post.
MOST_RESULTS = 1_000
MOST_METRICS = 100
MOST_PARAMETERS = 30


def _check_metric(key: str) -> str:
    if find_metric(key) is None:
        raise ValueError(
            f"there is no metric {key}; custom metrics begin with script. and end with _s, "
            "_per_s, _bytes, _ratio, _count, _higher or _lower, such as script.upload_s"
        )
    return key


def _check_sent_id(text: str) -> str:
    if not text:
        raise ValueError(
            "give each result an id, such as build-812/trial-3: it distinguishes a repeated result "
            "from another one with the same values"
        )
    return text


Sha = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
Line = Annotated[StorableLine, StringConstraints(max_length=300)]
Slug = Annotated[str, StringConstraints(max_length=60, pattern=r"^[a-z0-9][a-z0-9_-]*$")]
Note = Annotated[StorableText, StringConstraints(max_length=1000)]
BlockName = Annotated[StorableText, StringConstraints(min_length=1, max_length=200)]
#: Optional in the schema, so that a missing id gets the message above.
SentId = Annotated[StorableText, StringConstraints(max_length=200), AfterValidator(_check_sent_id)]
#: Far beyond any measured value; sums of larger values would overflow.
Value = Annotated[float, Field(allow_inf_nan=False, strict=True, ge=-1e100, le=1e100)]
#: A value of a parameter, without coercion: `True` and text are not numbers.
Parameter = (
    Annotated[bool, Field(strict=True)]
    | Annotated[int, Field(strict=True, ge=-(2**63), lt=2**63)]
    | Value
    | Annotated[StorableText, StringConstraints(strict=True, max_length=200)]
)
Axis = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
MetricKey = Annotated[str, AfterValidator(_check_metric)]


class CommitMetadata(BaseModel):
    """The facts of a commit that Pitwall may not know yet."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    subject: Line = ""
    author: Annotated[StorableLine, StringConstraints(max_length=200)] = ""
    committed_at: AwareDatetime | None = Field(
        default=None, description="Default: the time of the request."
    )
    parents: Annotated[list[Sha], Field(max_length=20)] = Field(default_factory=list)
    branch: Annotated[StorableLine, StringConstraints(max_length=200)] = Field(
        default="", description="Empty: the default branch of the project."
    )


def _require_id(schema: dict[str, Any]) -> None:
    schema["required"].append("id")
    del schema["properties"]["id"]["default"]
    schema["properties"]["id"]["minLength"] = 1


class ResultIn(BaseModel):
    """One trial that was measured elsewhere."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra=_require_id)

    project: Slug | None = Field(
        default=None, description="Needed where two projects share the benchmark."
    )
    benchmark: Slug
    host: Slug = Field(description="Where it was measured. A new name creates a host in the team.")
    profile: Slug | None = Field(
        default=None, description="Hardware profile of a new host. A new name creates a profile."
    )
    commit: Sha
    commit_facts: CommitMetadata | None = Field(
        default=None, description="Used if the commit is new."
    )
    parameters: Annotated[dict[Axis, Parameter], Field(max_length=MOST_PARAMETERS)] = Field(
        default={}, description="Of the case: axis → value, as in the matrix of the definition."
    )
    metrics: Annotated[dict[MetricKey, Value], Field(min_length=1, max_length=MOST_METRICS)] = (
        Field(description="Key → value, in the SI unit of the metric.")
    )
    validity: Literal["valid", "suspect", "invalid"] = "valid"
    # A factory: pydantic copies a default list deeply, which takes longer than everything else.
    reasons: Annotated[list[Note], Field(max_length=20)] = Field(default_factory=list)
    at: AwareDatetime | None = Field(
        default=None, description="When it was measured. Default: now."
    )
    block: BlockName | None = Field(
        default=None,
        description="Results of two commits in the same block were measured side by side.",
    )
    id: SentId = Field(
        default="",
        validate_default=True,
        description="Your id, unique for a case, host and commit; include the build in it. "
        "A result that is sent again adds nothing.",
    )
    url: Annotated[str, StringConstraints(max_length=1000, pattern=r"^https?://[^\s]+$")] | None = (
        None
    )
    note: Note = ""

    @model_validator(mode="after")
    def _require_reasons(self) -> Self:
        if self.validity != "valid" and not self.reasons:
            raise ValueError(f"give the reasons why the result is {self.validity}")
        return self


def estimate_stored_bytes(result: ResultIn) -> int:
    """Estimate the size as a row: fixed columns, two arrays and the provenance."""
    text_length = sum(map(len, result.reasons)) + len(result.note) + len(result.url or "")
    return 200 + 10 * len(result.metrics) + text_length


def build_provenance(result: ResultIn, token: str) -> Mapping[str, object]:
    """Return the provenance that is stored with the values; absent fields stay absent."""
    fields = {
        "token": token,
        "id": result.id,
        "block": result.block,
        "reasons": result.reasons,
        "url": result.url,
        "note": result.note,
    }
    return {name: value for name, value in fields.items() if value}

"""Proposals of definitions, and single trials of a definition that is not saved yet."""

from ninja import Schema

from orchestrator.api.schemas.catalogue import Source
from orchestrator.api.schemas.common import CommitOut, Text, build_commit_out
from orchestrator.benchmarks.proposals.proposal import Guess, ProjectProposal


class GuessOut(Schema):
    """A field of the definition, and why it has its value; `doubtful`: check it."""

    field: str
    reason: str
    doubtful: bool


class ProposalOut(Schema):
    """`source` is a definition as YAML; null if the files of the commit show no server."""

    commit: CommitOut
    source: str | None
    guesses: list[GuessOut]


class TryIn(Schema, extra="forbid"):
    """`host` is the name of a host. `ref` is measured (default: the default branch)."""

    source: Source
    host: Text
    ref: Text | None = None


def build_proposal_out(result: ProjectProposal) -> ProposalOut:
    proposal = result.proposal
    return ProposalOut(
        commit=build_commit_out(result.commit),
        source=proposal.source if proposal else None,
        guesses=[_build_guess_out(each) for each in proposal.guesses] if proposal else [],
    )


def _build_guess_out(guess: Guess) -> GuessOut:
    return GuessOut(field=guess.field, reason=guess.reason, doubtful=guess.doubtful)

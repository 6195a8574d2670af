"""All fuzzed targets, by name."""

from tests.fuzz.inputs import agents, results, texts, tools

TARGETS = {
    each.name: each for each in (*texts.TARGETS, *tools.TARGETS, *agents.TARGETS, *results.TARGETS)
}

"""A Python package for the tests of installs and builds."""

from textwrap import dedent

#: The pyproject.toml of a package `greeter` of one module; setuptools must be installed.
PYPROJECT = dedent(
    """\
    [build-system]
    requires = ["setuptools"]
    build-backend = "setuptools.build_meta"
    [project]
    name = "greeter"
    version = "1"
    [tool.setuptools]
    py-modules = ["greeter"]
    """
)

"""From a commit's source to a built tree: repositories, archives, installs and build steps."""

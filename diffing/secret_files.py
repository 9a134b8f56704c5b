"""Files that may hold secrets, known by their names.

Responsible for the built-in list. Knows nothing of settings, and never looks into a file.
"""

from __future__ import annotations

from pathlib import Path

from pathspec import GitIgnoreSpec

# In gitignore's syntax, without regard to case: names of files and of folders that hold them.
SECRET_NAMES = (
    *(
        ".env*",
        "*.env",
        ".netrc",
        "_netrc",
        ".npmrc",
        ".yarnrc.yml",
        ".pypirc",
        ".pgpass",
        ".my.cnf",
    ),
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.pkcs12", "*.jks", "*.keystore", "*.ppk", "*.kdbx"),
    *("*.ovpn", "*.tfvars", "*.tfvars.json", "*.tfstate", "*.tfstate.*", ".htpasswd", ".dockercfg"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".git-credentials", ".vault-token"),
    *(
        "credentials*",
        "secrets",
        "secrets.*",
        "secret.*",
        "*.secret",
        "*.secrets",
        "client_secret*",
    ),
    *("service-account*.json", "service_account*.json", ".boto", ".s3cfg"),
)
# Places that count wherever they are, also above the workspace folder.
SECRET_PLACES = (
    *(".git/", ".ssh/", ".gnupg/", ".aws/", ".azure/"),
    *("**/.kube/config", "**/.docker/config.json", "**/.config/gcloud/"),
)

_NAMES = GitIgnoreSpec.from_lines(SECRET_NAMES)
_PLACES = GitIgnoreSpec.from_lines(SECRET_PLACES)


def is_secret(path: Path, root: Path | None, *, is_folder: bool = False) -> bool:
    """Whether an absolute path may be, or lie in, a secret.

    Names above the workspace folder `root` do not count (a project may be called
    "credentials-api"); without one each part of the path does.
    """
    end = "/" if is_folder else ""
    place = path.as_posix().lower() + end
    if _PLACES.match_file(place):
        return True
    if root is None:
        return _NAMES.match_file(place)
    return path != root and _NAMES.match_file(path.relative_to(root).as_posix().lower() + end)

"""What is refused before anybody is asked: addresses, revisions and paths that can be read in more than one way."""

from __future__ import annotations

from pathlib import Path

import pytest

from konverge_resolution import Reason, ResolutionError
from konverge_resolution._internal.resolver_settings import parse_settings
from konverge_resolution._internal.resolvers.git import GitResolver, commands
from konverge_resolution._internal.resolvers.git.credentials import GitCredential
from konverge_resolution._internal.resolvers.git.parameters import PARAMETERS
from konverge_resolution._internal.resolvers.git.remotes import parse_remote
from konverge_resolution._internal.resolvers.git.revisions import (
    find_commit,
    find_highest_tag,
    find_short_commit,
    is_version_range,
    normalize_path,
    normalize_revision,
    parse_references,
)

OK = {"url": "https://example.com/team/boxes.git", "pathInRepo": "box.yaml"}


def validate_params(params: dict[str, str], **settings: str) -> dict[str, object]:
    resolver = GitResolver()
    found, mistakes = parse_settings(
        {key.replace("_", "-"): value for key, value in settings.items()}, resolver.settings
    )
    assert not mistakes
    return dict(resolver.validate(params, found.select()))


def expect_resolution_error(params: dict[str, str], **settings: str) -> str:
    with pytest.raises(ResolutionError) as caught:
        validate_params(params, **settings)
    assert caught.value.reason is Reason.INVALID_PARAMETERS
    return caught.value.message


@pytest.mark.parametrize(
    "url",
    [
        "/tmp/repo", "./repo", "repo", "", "file:///tmp/repo", "file://host/tmp/repo",
        "ext::sh -c touch% /tmp/evil", "ext::sh", "fd::17", "git://example.com/repo", "ftp://example.com/repo",
        "ssh://example.com/repo", "git@example.com:repo", "example.com:repo", "https::http://example.com/repo",
        "HTTPS+ext://example.com/repo", "-oProxyCommand=evil", "--upload-pack=evil", "https://", "https:///repo",
        "https://example.com", "https://example.com/", "https://-example.com/repo", "https://exa mple.com/repo",
        "https://example.com/repo\nurl=evil", "https://example.com/repo\x00", "https://example.com/ä",
        "https://example.com/../repo", "https://example.com/a/../repo", "https://example.com/%2e%2e/repo",
        "https://example.com/a%2Frepo", "https://example.com/a%0arepo", "https://example.com/a%252e/repo",
        "https://example.com/%zz", "https://example.com//repo", "https://example.com/./repo",
        "https://example.com/repo?a=b", "https://example.com/repo#a", "https://example.com\\@evil.example/repo",
        "https://example.com:0/repo", "https://example.com:65536/repo", "https://example.com:/repo",
        "https://127.1/repo", "https://0x7f.0.0.1/repo", "https://0x7f000001/repo", "https://2130706433/repo",
        "https://0177.0.0.1/repo", "https://127.0.0.0x1/repo", "https://127.0.0.1./repo", "https://example.com./repo",
        "https://[::1/repo", "https://[fe80::1%25eth0]/repo", "https://[fe80::1%eth0]/repo", "https://[example]/repo",
        "https://*.example.com/repo", "https://" + "a" * 3000 + "/repo",
    ],
)  # fmt: skip
def test_an_address_that_is_not_plainly_one_of_http_is_refused(url: str) -> None:
    with pytest.raises(ResolutionError) as caught:
        parse_remote(url)
    assert caught.value.reason is Reason.INVALID_PARAMETERS
    assert caught.value.message.startswith("parameter 'url': expected")


@pytest.mark.parametrize(
    "url",
    [
        "ssh://-oProxyCommand=touch/repo", "ssh://git@-oProxyCommand=touch/repo", "ssh://-git@example.com/repo",
        "-oProxyCommand=touch@example.com:repo", "git@-example.com:repo", "ssh://a:b@example.com/repo",
        "ssh://a'b@example.com/repo", "git@example.com:../repo", "git@[::1]:repo", "a@b@example.com:repo",
        "git@example.com:-repo\n",
    ],
)  # fmt: skip
def test_ssh_addresses_with_options_or_passwords_are_refused(url: str) -> None:
    with pytest.raises(ResolutionError):
        parse_remote(url, allows_ssh=True)


@pytest.mark.parametrize("url", ["https://u:sesame@example.com/repo", "https://sesame@example.com/repo",
                                 "http://:sesame@example.com/repo", "sesame@example.com:repo"])  # fmt: skip
def test_an_address_with_a_credential_is_refused_and_not_repeated(url: str) -> None:
    assert "sesame" not in expect_resolution_error({**OK, "url": url})


@pytest.mark.parametrize(
    ("url", "as_git_is_given_it", "uri"),
    [
        ("https://Example.com/a/b.git", "https://example.com/a/b.git", "git+https://example.com/a/b.git"),
        ("https://example.com:443/a/", "https://example.com/a", "git+https://example.com/a"),
        ("http://example.com:8080/a", "http://example.com:8080/a", "git+http://example.com:8080/a"),
        ("https://[::1]:8443/a", "https://[::1]:8443/a", "git+https://[::1]:8443/a"),
        ("https://example.com/My%20Team/_git/a", "https://example.com/My%20Team/_git/a",
         "git+https://example.com/My%20Team/_git/a"),
        ("ssh://git@example.com:2222/a", "ssh://git@example.com:2222/a", "git+ssh://example.com:2222/a"),
        ("git@example.com:a/b.git", "ssh://git@example.com/~/a/b.git", "git+ssh://example.com/a/b.git"),
    ],
)  # fmt: skip
def test_an_address_has_one_spelling(url: str, as_git_is_given_it: str, uri: str) -> None:
    remote = parse_remote(url, allows_ssh=True)
    assert (remote.url, remote.uri) == (as_git_is_given_it, uri)
    assert parse_remote(remote.url, allows_ssh=True) == remote


@pytest.mark.parametrize(
    "revision",
    [
        "--upload-pack=/tmp/evil", "-v", "--", "-", "main\nevil", "main evil", "HEAD:x", "HEAD~1", "HEAD^", "@",
        "@{-1}", "main@{1}", "refs/heads/a..b", "a..b", "a...b", "^main", ":/fix", "*", "refs/heads/*", "a[b", "a?b",
        "a\\b", "a//b", "/a", "a/", "a.lock", "a.lock/b", ".a", "a/.b", "a.", "a\x00b", "a\x7f", "\u2028", "a/-b",
        "a" * 2000,
    ],
)  # fmt: skip
def test_a_revision_that_is_no_name_is_refused(revision: str) -> None:
    # CVE-2026-40938: a revision that begins with a dash ran a program.
    with pytest.raises(ResolutionError) as caught:
        normalize_revision(revision)
    assert caught.value.message.startswith("parameter 'revision': expected a branch, a tag")


@pytest.mark.parametrize("revision", ["^1.2", "~1", ">=1.2 <2", "1.2 - 1.4", "v1.x", "1.2.*", "1.x || >=3"])
def test_a_range_of_versions_is_let_through_for_git_and_refused_for_an_api_unless_it_is_a_name(revision: str) -> None:
    assert normalize_revision(revision) == revision
    assert is_version_range(revision)
    by_api = {"repo": "a", "org": "b", "pathInRepo": "a", "revision": revision}
    if revision == "v1.x":
        assert validate_params(by_api)["revision"] == revision
    else:
        assert "requires url" in expect_resolution_error(by_api)


@pytest.mark.parametrize(
    "revision",
    ["main", "v1", "1.2", "v1.2.3", "0" * 40, "x", "feature-x", "refs/tags/v1.x", "1.x/y", "*", "x.x", "xx.1"],
)
def test_what_has_no_sign_of_a_range_is_none(revision: str) -> None:
    assert not is_version_range(revision)


@pytest.mark.parametrize(
    "text", ["^main", ">=1.2; rm", "^1.2\n", "^" + "1" * 300, "~", "1.2 --upload-pack=x", "^1 \x00"]
)
def test_what_only_looks_like_a_range_is_refused(text: str) -> None:
    with pytest.raises(ResolutionError):
        normalize_revision(text)


def test_of_several_commits_that_begin_so_none_is_taken() -> None:
    commits = ["abcdef0" + "1" * 33, "abcdef0" + "2" * 33, "1" * 40]
    output = "".join(f"{commit}\n" for commit in commits).encode()
    assert find_short_commit("ABCDEF01", output) == commits[0]
    assert find_short_commit("2222222", output) is None
    assert find_short_commit("abcdef01", output * 2) == commits[0]
    with pytest.raises(ResolutionError, match="2 commits begin with 'abcdef0'") as caught:
        find_short_commit("abcdef0", output)
    assert caught.value.reason is Reason.INVALID_PARAMETERS


def test_the_highest_tag_is_that_of_its_commit() -> None:
    references = {"refs/tags/v1.1": "1" * 40, "refs/tags/v1.1^{}": "2" * 40, "refs/tags/v1.0": "3" * 40,
                  "refs/heads/v1.9": "4" * 40, "refs/tags/v1.5-rc": "5" * 40, "refs/tags/banana": "6" * 40}  # fmt: skip
    assert find_highest_tag("1.x", references) == ("v1.1", "2" * 40)
    assert find_highest_tag("2.x", references) is None


@pytest.mark.parametrize("revision", ["main", "v1.2.3", "feature/x-y_z", "refs/pull/1/head", "HEAD", "ä", "0" * 40])
def test_a_revision_that_is_a_name_is_let_through(revision: str) -> None:
    assert normalize_revision(revision) == revision


@pytest.mark.parametrize(
    "path",
    ["../x", "a/../../x", "a/..", "..", "..\\x", "a\\b", "%2e%2e/x", "%2E%2e%2fx", "a%00b", "a\x00b", "a\nb", "", "/",
     ".", "a/", "a" * 2000],
)  # fmt: skip
def test_a_path_that_may_lead_elsewhere_is_refused(path: str) -> None:
    with pytest.raises(ResolutionError) as caught:
        normalize_path(path)
    assert caught.value.message.startswith("parameter 'pathInRepo': expected")


@pytest.mark.parametrize(("path", "spelled"), [("/etc/passwd", "etc/passwd"), ("./a//b", "a/b"), ("a b:c", "a b:c"),
                                               ("..a/b..", "..a/b..")])  # fmt: skip
def test_a_path_has_one_spelling(path: str, spelled: str) -> None:
    assert normalize_path(path) == spelled == normalize_path(spelled)


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"pathInRepo": "a"}, "parameter 'url': expected a repository's address"),
        ({"url": "https://example.com/a"}, "parameter 'pathInRepo': expected one, found none"),
        ({**OK, "repo": "a"}, "parameter 'repo': expected either url or repo"),
        ({**OK, "pathInrepo": "a"}, "parameter 'pathInrepo': no such parameter; expected one of "
         f"{', '.join(PARAMETERS)}; did you mean 'pathInRepo'?"),
        ({**OK, "org": "a"}, "parameter 'org': has no effect without repo"),
        ({**OK, "gitToken": "../x"}, "parameter 'gitToken': expected the name of a Secret"),
        ({**OK, "gitToken": "a", "gitTokenKey": "a/b"}, "parameter 'gitTokenKey': expected a key"),
        ({**OK, "gitSSHSecret": "a"}, "parameter 'gitSSHSecret': expected parameter 'gitToken' for https"),
        ({"repo": "a", "pathInRepo": "a"}, "parameter 'org': expected the owner of the repository"),
        ({"repo": "a/b", "org": "a", "pathInRepo": "a"}, "parameter 'repo': expected letters"),
        ({"repo": "..", "org": "a", "pathInRepo": "a"}, "parameter 'repo': expected letters"),
        ({"repo": "a", "org": "a/b", "pathInRepo": "a"}, "parameter 'org': expected letters"),
        ({"repo": "a", "org": "a", "pathInRepo": "a", "scmType": "cvs"}, "parameter 'scmType': expected github"),
        ({"repo": "a", "org": "a", "pathInRepo": "a", "scmType": "gitea"}, "parameter 'serverURL': expected the"),
        ({"repo": "a", "org": "a", "pathInRepo": "a", "serverURL": "file:///"}, "parameter 'serverURL': expected"),
    ],
)  # fmt: skip
def test_parameters_that_do_not_go_together_are_refused_by_name(params: dict[str, str], told: str) -> None:
    assert expect_resolution_error(params).startswith(told)


def test_defaults_come_from_the_settings() -> None:
    found = validate_params({"pathInRepo": "a"}, default_url="https://example.com/a", default_revision="stable")
    assert (found["url"], found["revision"], found["gitUser"]) == ("https://example.com/a", "stable", "git")
    found = validate_params({"repo": "a", "pathInRepo": "a"}, default_org="b", scm_type="gitea", server_url="https://c")
    assert (found["org"], found["scmType"], found["serverURL"]) == ("b", "gitea", "https://c")


def test_a_server_that_the_operator_has_written_wrongly_is_the_operators_mistake() -> None:
    with pytest.raises(ResolutionError, match="^setting 'server-url': expected") as caught:
        validate_params({"repo": "a", "org": "b", "pathInRepo": "a"}, scm_type="gitea", server_url="file:///srv")
    assert caught.value.reason is Reason.INVALID_CONFIGURATION


def test_only_a_full_id_of_a_commit_is_pinned() -> None:
    resolver = GitResolver()
    pinned = {
        revision: resolver.is_pinned({"revision": revision}) for revision in ("0" * 40, "0" * 64, "0" * 39, "main")
    }
    assert pinned == {"0" * 40: True, "0" * 64: True, "0" * 39: False, "main": False}


def test_a_tag_counts_before_a_branch_and_its_commit_before_itself() -> None:
    lines = "".join(f"{number * 40}\t{name}\n" for number, name in [
        ("1", "refs/heads/v1"), ("2", "refs/tags/v1"), ("3", "refs/tags/v1^{}"), ("4", "refs/heads/refs/heads/main"),
    ])  # fmt: skip
    references = parse_references(lines.encode() + b"garbage\n\tx\n")
    assert find_commit("v1", references) == "3" * 40
    assert find_commit("main", references) is None


def test_nothing_a_user_says_becomes_an_option_of_git() -> None:
    for command in (commands.ls_remote(["refs/heads/x"]), commands.fetch("0" * 40, is_filtered=True)):
        assert command[command.index("--") + 1] == "origin"
        assert all(not each.startswith("-") for each in command[command.index("--") + 1 :])


def test_a_credential_is_in_no_text_of_anything(tmp_path: Path) -> None:
    connection = commands.GitConnection(parse_remote(OK["url"]), ("192.0.2.1",), GitCredential(header="Basic sesame"))
    assert "sesame" not in repr(connection)
    environment = commands.build_environment(connection, tmp_path)
    (holding,) = [key for key, value in environment.items() if "sesame" in value]
    scope = environment[holding.replace("VALUE", "KEY")]
    assert scope == "http.https://example.com/.extraHeader"
    assert environment["GIT_CONFIG_GLOBAL"] == "/dev/null"

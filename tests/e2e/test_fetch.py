"""Downloads that break off, resume, differ from what is published, or come from a mirror."""

from __future__ import annotations

import hashlib
import json

import pytest
from file_server import CONTENT, fetch

from hbmp import datasets
from hbmp.app import cli
from hbmp.datasets import Remote
from hbmp.datasets._shared import fetch as fetching


def fetched(folder):
    return (folder / "labelme" / "LabelMe_gist.mat").read_bytes()


def left_over(folder):
    return sorted(path.name for path in folder.rglob("*") if ".part" in path.name or path.name.startswith(".unpack"))


def test_a_whole_file_is_fetched_once(server, serve, tmp_path):
    serve()
    done = fetch(tmp_path)
    assert fetched(tmp_path) == CONTENT
    assert (done.downloaded_bytes, done.files) == (len(CONTENT), ("LabelMe_gist.mat",))
    again = fetch(tmp_path)
    assert again.downloaded_bytes == 0
    assert len(server.requests) == 1
    assert left_over(tmp_path) == []
    entry = json.loads((tmp_path / "labelme" / "fetch.json").read_text())["LabelMe_gist.mat"]
    assert entry["sha256"] == hashlib.sha256(CONTENT).hexdigest()
    assert entry["md5"] == hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()


def test_a_cut_connection_is_resumed_where_it_broke(server, serve, tmp_path):
    serve()
    server.cuts = [100_000, 50_000]
    fetch(tmp_path)
    assert fetched(tmp_path) == CONTENT
    assert [wanted for _, wanted, _ in server.requests] == [None, "bytes=100000-", "bytes=150000-"]
    assert server.requests[1][2] == '"one"'


def test_a_later_run_goes_on_from_the_part(server, serve, tmp_path):
    serve()
    server.cuts = [100_000, 0, 0, 0]
    with pytest.raises(ValueError, match=r"broke off 3 times at 100000 bytes.*Run the same command to continue"):
        fetch(tmp_path, attempts=3)
    assert (tmp_path / "labelme" / "LabelMe_gist.mat.part").stat().st_size == 100_000
    assert not (tmp_path / "labelme" / "LabelMe_gist.mat").exists()
    server.cuts = []
    fetch(tmp_path)
    assert fetched(tmp_path) == CONTENT
    assert server.requests[-1][1] == "bytes=100000-"
    assert left_over(tmp_path) == []


def test_a_server_that_ignores_ranges_sends_it_all_again(server, serve, tmp_path):
    serve()
    server.ranges = False
    server.cuts = [100_000]
    fetch(tmp_path)
    assert fetched(tmp_path) == CONTENT
    assert len(server.requests) == 2


def test_a_file_that_changed_meanwhile_starts_over(server, serve, tmp_path):
    changed = CONTENT[::-1]
    serve(digests=False)
    server.cuts = [100_000, 0]
    with pytest.raises(ValueError, match="broke off 1 times"):
        fetch(tmp_path, attempts=1)
    server.files["LabelMe_gist.mat"], server.tag, server.cuts = changed, '"two"', []
    fetch(tmp_path)
    assert fetched(tmp_path) == changed
    assert server.requests[-1][1:] == ("bytes=100000-", '"one"')


def test_a_server_that_continues_a_changed_file_is_not_believed(server, serve, tmp_path):
    changed = CONTENT[::-1]
    serve(digests=False)
    server.cuts = [100_000, 0]
    with pytest.raises(ValueError, match="broke off 1 times"):
        fetch(tmp_path, attempts=1)
    server.files["LabelMe_gist.mat"], server.tag, server.cuts, server.conditions = changed, '"two"', [], False
    fetch(tmp_path)
    assert fetched(tmp_path) == changed
    assert [wanted for _, wanted, _ in server.requests[-2:]] == ["bytes=100000-", None]


@pytest.mark.parametrize("length", ["abc", "\u00b2", "9" * 5000])
def test_a_length_that_is_no_number_is_passed_over(server, serve, tmp_path, length):
    serve()
    server.length = length
    fetch(tmp_path)
    assert fetched(tmp_path) == CONTENT


def test_a_cut_without_announced_length_is_found_by_the_published_size(server, serve, tmp_path):
    serve()
    server.lengths = False
    server.cuts = [100_000]
    fetch(tmp_path)
    assert fetched(tmp_path) == CONTENT
    assert [wanted for _, wanted, _ in server.requests] == [None, "bytes=100000-"]


def test_a_file_shorter_than_published_is_refused(server, serve, tmp_path):
    serve(bytes=len(CONTENT) + 1)
    with pytest.raises(ValueError, match="has 300000 bytes where 300001 are published; it was deleted"):
        fetch(tmp_path)
    assert list((tmp_path / "labelme").iterdir()) == []


def test_corrupt_bytes_are_refused_and_deleted(server, serve, tmp_path):
    serve()
    server.corrupt = {0}
    with pytest.raises(ValueError, match=r"has SHA256 [0-9a-f]{64} where [0-9a-f]{64} is published; it was deleted"):
        fetch(tmp_path)
    assert not (tmp_path / "labelme" / "LabelMe_gist.mat").exists()
    assert left_over(tmp_path) == []
    fetch(tmp_path)
    assert fetched(tmp_path) == CONTENT


def test_a_part_with_wrong_bytes_is_thrown_away_and_fetched_whole(server, serve, tmp_path):
    serve()
    server.tag = None
    (tmp_path / "labelme").mkdir()
    (tmp_path / "labelme" / "LabelMe_gist.mat.part").write_bytes(b"x" * 1000)
    fetch(tmp_path)
    assert fetched(tmp_path) == CONTENT
    assert [wanted for _, wanted, _ in server.requests] == ["bytes=1000-", None]


def test_a_complete_part_needs_no_bytes(server, serve, tmp_path):
    serve(digests=False)
    (tmp_path / "labelme").mkdir()
    (tmp_path / "labelme" / "LabelMe_gist.mat.part").write_bytes(CONTENT)
    fetch(tmp_path)
    assert fetched(tmp_path) == CONTENT
    assert [wanted for _, wanted, _ in server.requests] == ["bytes=300000-"]


def test_md5_alone_is_checked_too(server, serve, tmp_path):
    serve(sha256="", md5=hashlib.md5(CONTENT, usedforsecurity=False).hexdigest())
    server.corrupt = {0}
    with pytest.raises(ValueError, match="has MD5"):
        fetch(tmp_path)
    fetch(tmp_path)
    assert fetched(tmp_path) == CONTENT


def test_more_bytes_than_published_are_not_taken(server, serve, tmp_path):
    serve(bytes=1000)
    with pytest.raises(ValueError, match="sends more than the 1000 bytes expected"):
        fetch(tmp_path)
    assert not (tmp_path / "labelme" / "LabelMe_gist.mat").exists()


def test_passing_errors_are_tried_again_and_lasting_ones_are_not(server, serve, tmp_path):
    serve()
    server.statuses = [503, 429, 500]
    fetch(tmp_path)
    assert fetched(tmp_path) == CONTENT
    server.files.clear()
    before = len(server.requests)
    with pytest.raises(ValueError, match="returned HTTP 404"):
        fetch(tmp_path, force=True)
    assert len(server.requests) == before + 1
    assert fetched(tmp_path) == CONTENT


def test_pauses_grow_while_nothing_comes(server, serve, tmp_path, monkeypatch):
    serve()
    pauses = []
    monkeypatch.setattr("time.sleep", pauses.append)
    server.statuses = [503, 503, 503]
    fetching.fetch("labelme", tmp_path, pause=1.0)
    assert pauses == [1.0, 2.0, 4.0]


def test_the_mirror_is_asked_when_the_first_place_fails(server, serve, tmp_path):
    serve(url := "LabelMe_gist.mat", mirrors=(server.url("mirror"),))
    server.files["mirror"] = server.files.pop(url)
    fetch(tmp_path)
    assert fetched(tmp_path) == CONTENT


def test_nobody_there_is_one_sentence(serve, tmp_path, monkeypatch):
    monkeypatch.setattr(
        type(datasets.get("labelme")), "files", (Remote("http://127.0.0.1:1/LabelMe_gist.mat", "LabelMe_gist.mat"),)
    )
    with pytest.raises(ValueError, match=r"22K LabelMe could not be fetched: .*broke off 2 times at 0 bytes"):
        fetch(tmp_path, attempts=2)


def test_a_redirect_to_a_local_file_is_not_followed(server, serve, tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(CONTENT)
    serve()
    server.redirects["LabelMe_gist.mat"] = secret.as_uri()
    with pytest.raises(ValueError, match="could not be fetched"):
        fetch(tmp_path, attempts=1)
    assert not (tmp_path / "labelme" / "LabelMe_gist.mat").exists()


def test_the_first_download_pins_what_is_not_published(server, serve, tmp_path):
    serve(digests=False)
    fetch(tmp_path)
    server.files["LabelMe_gist.mat"] = CONTENT[:-1] + b"?"
    with pytest.raises(ValueError, match=r"where the first download had .* \(noted in fetch\.json\)"):
        fetch(tmp_path, force=True)
    assert fetched(tmp_path) == CONTENT


def test_a_file_put_there_by_hand_is_verified_and_used(server, serve, tmp_path):
    serve()
    (tmp_path / "labelme").mkdir()
    path = tmp_path / "labelme" / "LabelMe_gist.mat"
    path.write_bytes(b"not it")
    with pytest.raises(ValueError, match=r"has 6 bytes where 300000 are published\. Delete it"):
        fetch(tmp_path)
    path.write_bytes(CONTENT)
    assert fetch(tmp_path).downloaded_bytes == 0
    assert server.requests == []


def test_a_file_lost_later_is_fetched_again(server, serve, tmp_path):
    serve()
    fetch(tmp_path)
    (tmp_path / "labelme" / "LabelMe_gist.mat").unlink()
    fetch(tmp_path)
    assert fetched(tmp_path) == CONTENT
    assert len(server.requests) == 2


def test_a_file_cut_later_is_noticed(server, serve, tmp_path):
    serve()
    fetch(tmp_path)
    (tmp_path / "labelme" / "LabelMe_gist.mat").write_bytes(CONTENT[:10])
    with pytest.raises(ValueError, match="has 10 bytes where 300000 are published"):
        fetch(tmp_path)
    fetch(tmp_path, force=True)
    assert fetched(tmp_path) == CONTENT


def test_the_command_says_verified_only_where_a_digest_is_published(serve, tmp_path, capsys):
    serve()
    assert cli.main(["fetch", "labelme", "--data-dir", str(tmp_path / "one")]) == 0
    assert capsys.readouterr().out.endswith("0.3 MB downloaded, verified.\n")
    serve(digests=False)
    assert cli.main(["fetch", "labelme", "--data-dir", str(tmp_path / "two")]) == 0
    assert capsys.readouterr().out.endswith("SHA-256 pinned in fetch.json (none is published).\n")

"""Archives: sound ones end in a loader, malicious ones leave nothing."""

from __future__ import annotations

import io
import json
import os
import stat
import tarfile
import zipfile

import pytest
from file_server import fetch

from hbmp import datasets
from hbmp.app import cli


def tar_of(*members, mode="w:gz"):
    """A tar of (name, content or TarInfo type, link target)."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as tar:
        for name, content, *target in members:
            info = tarfile.TarInfo(name)
            if isinstance(content, bytes) and len(content) != 1:
                info.size, info.mode = len(content), 0o777
                tar.addfile(info, io.BytesIO(content))
            else:
                info.type, info.linkname = content, target[0] if target else ""
                tar.addfile(info)
    return packed.getvalue()


def zip_of(*members):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content, *mode in members:
            info = zipfile.ZipInfo(name)
            info.external_attr = (mode[0] if mode else stat.S_IFREG | 0o777) << 16
            zipped.writestr(info, content)
    return packed.getvalue()


BATCHES = [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]


def cifar_tar():
    return tar_of(
        ("cifar-10-batches-bin", tarfile.DIRTYPE),
        *((f"cifar-10-batches-bin/{name}", bytes([number]) + bytes(3072)) for number, name in enumerate(BATCHES)),
    )


def test_cifar10_from_the_server_to_the_loader(server, serve, tmp_path, capsys):
    serve("cifar-10-binary.tar.gz", cifar_tar(), name="cifar10")
    server.cuts = [100]
    assert cli.main(["fetch", "cifar10", "--data-dir", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["folder"] == str(tmp_path / "cifar10")
    assert len(told["files"]) == 6
    assert datasets.load("cifar10", tmp_path).labels.tolist() == [0, 1, 2, 3, 4, 5]
    assert not (tmp_path / "cifar10" / "cifar-10-binary.tar.gz").exists()
    assert not os.access(tmp_path / "cifar10" / "cifar-10-batches-bin" / "test_batch.bin", os.X_OK)
    assert cli.main(["fetch", "cifar10", "--data-dir", str(tmp_path)]) == 0
    assert "6 files" in (told_again := capsys.readouterr().out)
    assert "already there" in told_again


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        ([("../outside", b"evil")], "'../outside', a name outside its own folder"),
        ([("fine", b"good"), ("deep/../../outside", b"evil")], "a name outside its own folder"),
        ([("{here}/outside", b"evil")], "a name outside its own folder"),
        ([("C:\\outside", b"evil")], "a name outside its own folder"),
        ([("link", tarfile.SYMTYPE, "../.."), ("link/outside", b"evil")], "'link', a link or device"),
        ([("link", tarfile.SYMTYPE, "/etc/passwd")], "'link', a link or device"),
        ([("fine", b"good"), ("hard", tarfile.LNKTYPE, "../../outside")], "'hard'"),
        ([("pipe", tarfile.FIFOTYPE)], "'pipe', a link or device"),
        ([("device", tarfile.CHRTYPE)], "'device', a link or device"),
        ([("twice", b"good"), ("twice", b"evil")], "holds one name twice"),
        ([("file", b"good"), ("file/inside", b"evil")], "holds one name twice"),
        ([("bomb", bytes(1_000_000))], "unpacks to more bytes than its data set has"),
        ([("half", bytes(60_000)), ("other", bytes(60_000))], "unpacks to more bytes than its data set has"),
    ],
)
def test_a_malicious_tar_leaves_nothing(serve, tmp_path, monkeypatch, members, sentence):
    monkeypatch.setattr(type(datasets.get("cifar10")), "unpacked_bytes", 100_000)
    members = [(name.format(here=tmp_path), *rest) for name, *rest in members]
    serve("cifar-10-binary.tar.gz", tar_of(*members), name="cifar10")
    with pytest.raises(ValueError, match=sentence):
        fetch(tmp_path / "data", "cifar10")
    assert list((tmp_path / "data" / "cifar10").iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        ([("../outside", b"evil")], "a name outside its own folder"),
        ([("/outside", b"evil")], "a name outside its own folder"),
        ([("", b"evil")], "holds '', a name outside its own folder"),
        ([("link", b"/etc/passwd", stat.S_IFLNK | 0o777)], "a link, a device or encrypted"),
        ([("bomb", bytes(1_000_000))], "unpacks to more bytes than its data set has"),
    ],
)
def test_a_malicious_zip_leaves_nothing(serve, tmp_path, monkeypatch, members, sentence):
    monkeypatch.setattr(type(datasets.get("nuswide")), "unpacked_bytes", 100_000)
    serve("Groundtruth.zip", zip_of(*members), name="nuswide")
    with pytest.raises(ValueError, match=sentence):
        fetch(tmp_path / "data", "nuswide")
    assert list((tmp_path / "data" / "nuswide").iterdir()) == []


def test_a_zip_is_unpacked_below_what_is_there(serve, tmp_path):
    (tmp_path / "nuswide" / "AllLabels").mkdir(parents=True)
    (tmp_path / "nuswide" / "AllLabels" / "mine.txt").write_text("kept")
    serve("Groundtruth.zip", zip_of(("AllLabels/", b""), ("AllLabels/Labels_sky.txt", b"0\n1\n")), name="nuswide")
    done = fetch(tmp_path, "nuswide")
    assert done.files == ("AllLabels/Labels_sky.txt",)
    assert (tmp_path / "nuswide" / "AllLabels" / "Labels_sky.txt").read_bytes() == b"0\n1\n"
    assert (tmp_path / "nuswide" / "AllLabels" / "mine.txt").read_text() == "kept"
    assert "images are sent on request" in done.note


def test_an_archive_cut_short_is_told(serve, tmp_path):
    content = cifar_tar()
    serve("cifar-10-binary.tar.gz", content[: len(content) // 2], name="cifar10")
    with pytest.raises(ValueError, match="is not a whole archive"):
        fetch(tmp_path, "cifar10")


def test_what_cannot_be_downloaded_says_how_to_get_it(tmp_path, capsys):
    assert cli.main(["fetch", "imagenet100", "--data-dir", str(tmp_path)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("ImageNet100 cannot be downloaded. Ask for ImageNet")
    assert told.err.count("\n") == 1

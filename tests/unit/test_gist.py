"""GIST against slow sums over pixels and frequencies, and what its description promises."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

import hbmp
from hbmp.app.cli import main
from hbmp.encoders.gist import ORIENTATIONS, SCALES, descriptor, transfer_functions, whitened


@pytest.fixture(scope="module")
def picture():
    noise = ndimage.gaussian_filter(np.random.default_rng(0).random((48, 48)), 1.5)
    return (255 * (noise - noise.min()) / np.ptp(noise)).astype(np.float32)


def as_grid(x):
    return np.reshape(x, (SCALES, ORIENTATIONS, 4, 4))


def slow_cells(grey, scale, orientation):
    """The cells of one filter by definition, without a fast transform: sums over all pixels for every frequency."""
    side, margin = len(grey), min(24, len(grey))
    n = side + 2 * margin
    mirrored = [*range(margin - 1, -1, -1), *range(side), *range(side - 1, side - 1 - margin, -1)]
    logarithm = np.log(1 + grey.astype(float))[np.ix_(mirrored, mirrored)]
    to_frequency = np.exp(-2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n)
    u = np.array([k / n if k < n / 2 else k / n - 1 for k in range(n)])
    f = np.sqrt(u[:, None] ** 2 + u[None, :] ** 2)

    def filtered(values, gain):
        spectrum = to_frequency @ values @ to_frequency
        return to_frequency.conj() @ (spectrum * gain) @ to_frequency.conj() / n**2

    low = np.exp(-np.log(2) * (f / (4 / side)) ** 2)
    high = logarithm - filtered(logarithm, low).real
    contrast = high / (0.2 + np.sqrt(np.abs(filtered(high**2, low).real)))
    gain = np.zeros((n, n))
    for row in range(n):
        for column in range(n):
            if (row, column) != (0, 0) and n // 2 not in (row, column):
                turn = np.arctan2(u[row], u[column]) - np.pi * orientation / 8
                turn = (turn + np.pi) % (2 * np.pi) - np.pi
                centre = 0.3 / 1.85**scale
                gain[row, column] = np.exp(-3.5 * (f[row, column] / centre - 1) ** 2 - 2 * np.pi * turn**2)
    response = np.abs(filtered(contrast, gain))[margin : margin + side, margin : margin + side]
    step = side // 4
    cells = range(0, side, step)
    return [[response[top : top + step, left : left + step].mean() for left in cells] for top in cells]


@pytest.mark.parametrize(("scale", "orientation"), [(0, 3), (3, 7)])
def test_equals_the_sums_of_its_definition(picture, scale, orientation):
    small = picture[:16, :16]
    found = as_grid(descriptor(small))[scale, orientation]
    np.testing.assert_allclose(found, slow_cells(small, scale, orientation), rtol=1e-4, atol=1e-5)


def test_a_turn_by_90_degrees_moves_cells_and_orientations(picture):
    x, turned = as_grid(descriptor(picture)), as_grid(descriptor(np.rot90(picture).copy()))
    moved = np.rot90(np.roll(x, ORIENTATIONS // 2, axis=1), axes=(2, 3))
    np.testing.assert_allclose(turned, moved, atol=1e-5)
    mirrored = as_grid(descriptor(picture[:, ::-1].copy()))
    np.testing.assert_allclose(mirrored, x[:, -np.arange(8) % 8][..., ::-1], atol=1e-5)


def test_brightness_and_contrast_hardly_count_and_constant_pictures_give_zeros(picture):
    x = descriptor(picture + 20)
    for factor in (0.9, 0.5):
        assert np.linalg.norm(descriptor((picture + 20) * np.float32(factor)) - x) < 0.01 * np.linalg.norm(x)
    assert np.linalg.norm(descriptor(picture.T.copy()) - x) > 0.1 * np.linalg.norm(x)
    for value in (0, 7, 255):
        assert not descriptor(np.full((48, 48), value, np.float32)).any()


def test_local_contrast_is_equal_where_the_contrast_of_the_picture_is_not():
    ramp = np.exp(np.linspace(-1, 1, 128))[None, :] * np.random.default_rng(1).standard_normal((128, 128))
    contrast = whitened(ramp.astype(np.float32), 128)
    deviations = [contrast[:, start : start + 16].std() for start in range(16, 112, 16)]
    assert max(deviations) < 1.5 * min(deviations)
    assert ramp[:, 96:112].std() > 3 * ramp[:, 16:32].std()


def test_filters_cover_all_frequencies_and_orientations_evenly():
    """Wedges add up to a ring within a few percent; rings leave no gap between the lowest and the highest centre."""
    filters = transfer_functions(201).astype(float)
    opposite = np.roll(filters[:, ::-1, ::-1], (1, 1), axis=(1, 2))
    energy = filters**2 + opposite**2
    axis = np.fft.fftfreq(201)
    f = np.hypot(axis[:, None], axis)
    for scale, rings in enumerate(energy.reshape(SCALES, ORIENTATIONS, 201, 201).sum(axis=1)):
        centre = 0.3 / 1.85**scale
        around = rings[np.abs(f - centre) < 0.004]
        assert around.max() < 1.06 * around.min()
        assert abs(f[np.unravel_index(rings.argmax(), f.shape)] - centre) < 0.03 * centre + 0.004
    covered = energy.sum(axis=0)[(f >= 0.3 / 1.85**3) & (f <= 0.3)]
    assert covered.max() < 1.5 * covered.min()
    assert filters.max() <= 1
    assert not filters[:, 0, 0].any()


def test_a_grating_answers_at_its_own_scale_orientation_and_place():
    column, row = np.meshgrid(np.arange(64), np.arange(64))
    for scale, orientation in ((0, 0), (0, 6), (1, 3), (2, 4)):
        angle, f = np.pi * orientation / 8, 0.3 / 1.85**scale
        wave = np.cos(2 * np.pi * f * (column * np.cos(angle) + row * np.sin(angle)))
        grey = np.where((row < 32) & (column >= 32), 128 + 100 * wave, 128).astype(np.float32)
        x = as_grid(descriptor(grey))
        assert np.unravel_index(x.sum(axis=(2, 3)).argmax(), (4, 8)) == (scale, orientation)
        assert x[scale, orientation, :2, 2:].mean() > 3 * x[scale, orientation, 2:, :2].mean()


def test_a_wrong_size_is_refused():
    with pytest.raises(ValueError, match="size must be a multiple of 4, at least 16; found 30"):
        hbmp.encoders.GIST(size=30).encode(np.zeros((1, 8, 8, 3), np.uint8))


def test_the_labelme_protocol_runs_on_a_folder_of_pictures(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pictures").mkdir()
    (tmp_path / "data" / "mine").mkdir(parents=True)
    rng = np.random.default_rng(0)
    for number in range(40):
        noise = ndimage.gaussian_filter(rng.random((24, 24)), (1 + number % 3, 1))
        Image.fromarray((255 * noise / noise.max()).astype(np.uint8)).save(tmp_path / "pictures" / f"{number}.png")
    made = ["features", "pictures", "--encoder", '["gist", {"size": 16}]', "-o", "data/mine/features.npy", "--json"]
    assert main(made) == 0
    assert json.loads(capsys.readouterr().out)["features"] == 512
    sizes = '{"n_train": 20, "n_query": 8}'
    words = ["reproduce", "labelme", "--data", "mine", "--data-dir", "data", "--protocol-params", sizes]
    assert main([*words, "--methods", "itq", "--bits", "16", "--seeds", "0", "--results", "r"]) == 0
    (line,) = (tmp_path / "r" / "labelme.jsonl").read_text().splitlines()
    assert json.loads(line)["scores"]["ndcg-scaled"] > 0.3

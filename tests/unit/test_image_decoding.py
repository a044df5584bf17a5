"""One picture as a square of RGB pixels: scaling, cropping, rotation and every kind of pixel."""

import io
import tracemalloc

import numpy as np
import pytest
from PIL import Image

from hbmp.images import Images, UnreadableImage


def encoded(image, kind="PNG", **options):
    stream = io.BytesIO()
    (image if isinstance(image, Image.Image) else Image.fromarray(image)).save(stream, kind, **options)
    return stream.getvalue()


def smooth(height, width):
    """Waves of colour, of which JPEG and scaling keep nearly everything."""
    y, x = np.mgrid[0:height, 0:width] / max(height, width)
    waves = [np.sin(3 * x + 2 * y), np.cos(4 * y - x), np.sin(2 * x * y + 1)]
    return (127.5 + 120 * np.stack(waves, axis=2)).astype(np.uint8)


def decode_one(content, size, tmp_path, ending="png"):
    path = tmp_path / f"picture.{ending}"
    path.write_bytes(content)
    return Images.from_paths([path]).decode([0], size)[0]


@pytest.mark.parametrize(("height", "width"), [(40, 40), (40, 61), (75, 30), (24, 24), (16, 90)])
def test_the_short_side_is_scaled_and_the_centre_kept(height, width, tmp_path):
    image, size = Image.fromarray(smooth(height, width)), 24
    scale = size / min(height, width)
    scaled = image.resize((round(width * scale), round(height * scale)), Image.Resampling.BICUBIC)
    left, top = (scaled.width - size) // 2, (scaled.height - size) // 2
    expected = np.asarray(scaled.crop((left, top, left + size, top + size))).astype(int)
    for found in (
        decode_one(encoded(image), size, tmp_path),
        Images.from_array(np.asarray(image)[None]).decode([0], size)[0],
    ):
        assert found.shape == (24, 24, 3)
        assert np.abs(found - expected).max() <= 9  # half a pixel of cropping
        assert np.abs(found - expected).mean() < 3


def test_a_narrow_picture_is_not_scaled_as_a_whole(tmp_path):
    picture = np.zeros((1, 20_000, 3), np.uint8)
    picture[0, 9_999:10_001] = 255
    tracemalloc.start()
    found = decode_one(encoded(picture), 64, tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.max() == 255
    assert peak < 2e6


def test_large_jpegs_are_decoded_small_and_look_the_same(tmp_path):
    stripes = 127.5 + 120 * np.sin(np.arange(400) * 2 * np.pi / 24)  # six pixels each once scaled
    fine = np.broadcast_to(stripes[None, :, None], (300, 400, 3)).astype(np.uint8)
    for picture, size in ((smooth(1200, 1600), 64), (fine, 75)):
        found = decode_one(encoded(picture, "JPEG", quality=95), size, tmp_path, "jpg").astype(int)
        expected = Images.from_array(picture[None]).decode([0], size)[0]
        assert np.abs(found - expected).max() < 12
        assert np.abs(found - expected).mean() < 2.5


@pytest.mark.parametrize("orientation", range(1, 9))
def test_rotations_that_cameras_note_are_undone(orientation, tmp_path):
    upright = smooth(30, 44)
    upright[:10, :10] = (255, 0, 0)
    undo = {
        1: lambda a: a,
        2: lambda a: a[:, ::-1],
        3: lambda a: a[::-1, ::-1],
        4: lambda a: a[::-1],
        5: lambda a: a.swapaxes(0, 1),
        6: lambda a: np.rot90(a, 1),  # held so that the sensor's first row is the right side
        7: lambda a: a[::-1, ::-1].swapaxes(0, 1),
        8: lambda a: np.rot90(a, -1),
    }
    stored = Image.fromarray(np.ascontiguousarray(undo[orientation](upright)))
    exif = Image.Exif()
    exif[0x0112] = orientation
    found = decode_one(encoded(stored, exif=exif), 30, tmp_path)
    np.testing.assert_array_equal(found, upright[:, 7:37])


def test_a_broken_note_on_rotation_does_not_hide_the_picture(tmp_path):
    picture = smooth(20, 20)
    found = decode_one(encoded(picture, "JPEG", quality=95, exif=b"Exif\0\0broken"), 20, tmp_path, "jpg")
    assert np.abs(found.astype(int) - picture).mean() < 4


def test_every_kind_of_pixel_becomes_rgb(tmp_path):
    ramp = np.tile(np.arange(0, 256, 16, dtype=np.uint8), (16, 1))
    grey = np.repeat(ramp[:, :, None], 3, axis=2)
    alpha = np.where(np.arange(16) < 8, 255, 0).astype(np.uint8)
    on_white = np.where(np.arange(16)[None, :, None] < 8, grey, 255)
    palette = Image.fromarray(grey).quantize(64)
    see_through = palette.copy()
    see_through.info["transparency"] = int(np.asarray(palette)[0, 0])
    as_rgb = np.asarray(palette.convert("RGB")).copy()
    holes = as_rgb.copy()
    holes[np.asarray(palette) == see_through.info["transparency"]] = 255
    cmyk = Image.fromarray(grey).convert("CMYK")
    with_alpha = Image.merge("LA", (Image.fromarray(ramp), Image.fromarray(np.tile(alpha, (16, 1)))))
    for name, image, kind, expected in [
        ("grey", Image.fromarray(ramp), "PNG", grey),
        ("black and white", Image.fromarray(ramp > 100), "PNG", np.where(grey > 100, 255, 0)),
        ("16 bits", Image.fromarray(ramp.astype(np.uint16) * 257), "PNG", grey),
        ("32 bits", Image.fromarray(ramp.astype(np.int32) * 257), "TIFF", grey),
        ("transparent grey", with_alpha, "PNG", on_white),
        ("transparent colour", with_alpha.convert("RGBA"), "PNG", on_white),
        ("palette", palette, "PNG", as_rgb),
        ("transparent palette", see_through, "PNG", holes),
        ("first of a film", palette, "GIF", as_rgb),
        ("print", cmyk, "TIFF", np.asarray(cmyk.convert("RGB"))),
        ("video", Image.fromarray(grey).convert("YCbCr"), "TIFF", grey),
    ]:
        found = decode_one(encoded(image, kind), 16, tmp_path, kind.lower())
        assert np.abs(found.astype(int) - expected).max() <= (1 if name == "video" else 0), name
    np.testing.assert_array_equal(Images.from_array(ramp[None]).decode([0], 16)[0], grey)
    np.testing.assert_array_equal(Images.from_array(ramp[None, :, :, None]).decode([0], 16)[0], grey)
    scaled = Images.from_array(ramp[None]).decode([0], 8)[0]
    assert (scaled == scaled[:, :, :1]).all()
    with pytest.raises(UnreadableImage, match="floating-point numbers"):
        decode_one(encoded(Image.fromarray(ramp.astype(np.float32)), "TIFF"), 16, tmp_path, "tif")

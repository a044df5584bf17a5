"""The real server in a process of its own, on a free port."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
from sklearn.datasets import load_digits

import hbmp
from hbmp.functions.network import Network

N_BITS = 24


@contextmanager
def serving(*words, environment=None):
    """Start `hbmp serve … --port 0`; gives its address."""
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "HBMP_TOKEN": "", **(environment or {})}
    command = [sys.executable, "-m", "hbmp", "serve", *map(str, words), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables) as process:
        try:
            line = process.stdout.readline()
            found = re.search(r"http://\S+", line)
            assert found, f"the server said {line!r}"
            yield found.group()
        finally:
            process.terminate()
            process.wait(timeout=20)


def make_digits(folder):
    """A model and a database of digits in a folder, with thumbnails and features beside them."""
    X, y = load_digits(return_X_y=True)
    model = hbmp.HBMP(N_BITS, function="linear", random_state=0).fit(X, y)
    model.save(folder / "model")
    hbmp.Database.build(model, X, labels=y).save(folder / "db")
    np.save(folder / "features.npy", X.astype(np.float32))
    np.save(folder / "thumbnails.npy", (X.reshape(-1, 8, 8) * 15.9).astype(np.uint8))
    return X, y, model


def make_pictures(folder):
    """An image model, its database and the folder of pictures it was made from: red, green and blue noise."""
    from PIL import Image

    random = np.random.default_rng(0)
    classes = np.repeat(["blue", "green", "red"], 12)
    pixels = random.integers(0, 90, (len(classes), 40, 32, 3), dtype=np.uint8)
    for channel, name in ((2, "blue"), (1, "green"), (0, "red")):
        pixels[classes == name, :, :, channel] += 150
    for number, (name, picture) in enumerate(zip(classes, pixels, strict=True)):
        (folder / "pictures" / name).mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(folder / "pictures" / name / f"{number:02}.png")
    images = hbmp.Images.from_folder(folder / "pictures")
    network = Network(backbone="tiny", augmentation="none", device="cpu", epochs=12, lr=3e-3, batch_size=12)
    model = hbmp.HBMP(8, function=network, device="cpu", random_state=0).fit(images, images.labels)
    model.save(folder / "model")
    hbmp.Database.build(model, images).save(folder / "db")
    return images, model


TOPICS = {
    "animals": ["cat", "dog", "kitten", "puppy", "horse", "sheep", "goat", "rabbit"],
    "money": ["loan", "bank", "credit", "mortgage", "interest", "savings", "pension", "tax"],
    "kitchen": ["oven", "pan", "knife", "kettle", "spoon", "fridge", "stove", "plate"],
}


def make_texts(folder, *, model_of=(), **options):
    """A database of texts with ids that need quoting, titles, links and vectors; its model remembers its encoder.

    `model_of`: the topics that an HBMP model is fitted on; without them the codes are random hyperplanes.
    """
    words = [(topic, word) for topic, words in TOPICS.items() for word in words]
    rows = [
        {
            "title": f"All about the {word}",
            "text": f"What everybody should know about a {word}, before buying one. " * 3,
            "topic": topic,
            "year": 2000 + number % 5,
            "url": f"https://example.org/{word}",
        }
        for number, (topic, word) in enumerate(words)
    ]
    texts = [word for _, word in words]
    encoder = hbmp.encoders.get("wordllama")
    vectors = encoder.encode(texts)
    model = hbmp.get_method("lsh")(N_BITS, random_state=0).fit(vectors)
    if model_of:
        known = [place for place, (topic, _) in enumerate(words) if topic in model_of]
        model = hbmp.HBMP(N_BITS, function="linear", random_state=0)
        model.fit(vectors[known], [words[place][0] for place in known])
    model.with_encoder(encoder)
    ids = [f"{topic}/{word} & co?" for topic, word in words]
    labels = [topic for topic, _ in words]
    build = {"ids": ids, "labels": labels, "payload": rows, "vectors": "float32", **options}
    hbmp.Database.build(model, texts, path=folder / "db", **build).close()
    return ids, rows, vectors

"""Near-duplicates that a script makes, found by hbmp, by perceptual hashes and by MinHash: precision, recall, seconds.

    python benchmarks/dedup.py pictures images112.tar    4,000 pictures: 2,000 of PASCAL VOC 2007, five copies of 400
    python benchmarks/dedup.py texts test.csv            5,000 posts: 3,000 of 20 Newsgroups, five copies of 400
    python benchmarks/dedup.py scale train.csv test.csv  50,000 to 200,000 pieces of posts: seconds and candidates
    python benchmarks/dedup.py vectors features.npy --items 1_000_000       mixtures of two of the rows, 1 % with a copy
    python benchmarks/dedup.py --table                   the results there are, as Markdown

A picture is resized, cropped, saved as a poor JPEG, recoloured, or captioned; a post is cut, loses words, quotes
another, has its parts reordered, or has typing errors. Every two of the six items of one source are a true pair. A
pair of different sources counts as false, although some are near-duplicates of their own: two photographs of one
scene, or a post that quotes another.

Every method is shown at its usual threshold and, where its false pairs can be counted, at the threshold with one false
pair in twenty. pHash and dHash are those of the package imagehash, 64 bits; MinHash is that of datasketch, 128
permutations of shingles of three words; "backbone" is the plain cosine of the same features that hbmp starts from.
Needs `pip install imagehash datasketch wordllama`.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import tarfile
import tempfile
import time
from pathlib import Path

import numpy as np

import hbmp
from hbmp.dedup import calibrate, pairs_within
from hbmp.dedup.finding import bits_on, radius_for
from hbmp.dedup.space import Space

RESULTS = Path(__file__).parents[1] / "results" / "benchmark-dedup.json"
SOURCES, COPIED = {"pictures": 2000, "texts": 3000}, 400
PICTURE_KINDS = ("resize", "crop", "jpeg", "colour", "caption")
TEXT_KINDS = ("cut", "drop", "quote", "order", "typos")
PRECISION = 0.95


def disturbed_picture(picture, kind, rng):
    """One copy of a picture."""
    from PIL import Image, ImageDraw, ImageEnhance

    width, height = picture.size
    if kind == "resize":
        share = rng.uniform(0.5, 0.8)
        return picture.resize((round(width * share), round(height * share)), Image.Resampling.BICUBIC)
    if kind == "crop":
        share = rng.uniform(0.8, 0.95)
        w, h = round(width * share), round(height * share)
        x, y = rng.integers(0, width - w + 1), rng.integers(0, height - h + 1)
        return picture.crop((x, y, x + w, y + h))
    if kind == "jpeg":
        file = io.BytesIO()
        picture.save(file, "JPEG", quality=int(rng.integers(10, 35)))
        return Image.open(file).convert("RGB")
    if kind == "colour":
        for enhance in (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color):
            picture = enhance(picture).enhance(rng.uniform(0.65, 1.35))
        return picture
    captioned = picture.copy()
    draw, bar = ImageDraw.Draw(captioned), round(height * rng.uniform(0.1, 0.18))
    draw.rectangle((0, height - bar, width, height), fill=(0, 0, 0))
    draw.text((4, height - bar), "shared with friends", fill=(255, 255, 255), font_size=max(8, bar - 3))
    return captioned


def disturbed_text(words, kind, rng, others):
    """One copy of a post, as words."""
    if kind == "cut":
        return words[: int(len(words) * rng.uniform(0.6, 0.8))]
    if kind == "drop":
        return [word for word in words if rng.random() > 0.1]
    if kind == "quote":
        start = int(rng.integers(0, len(others) - 200))
        return others[start : start + max(5, len(words) // 4)] + words
    if kind == "order":
        parts = [words[i : i + 20] for i in range(0, len(words), 20)]
        rng.shuffle(parts)
        return [word for part in parts for word in part]
    return [word[0] + word[2:1:-1] + word[3:] if len(word) > 2 and rng.random() < 0.08 else word for word in words]


def pictures_of(tar, seed):
    """(pictures, source of each, kind of each)."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    with tarfile.open(tar) as files:
        names = [member for member in files.getmembers() if member.name.endswith(".jpg")]
        n = SOURCES["pictures"]  # the first n of this order were used to choose settings
        chosen = [names[row] for row in sorted(np.random.default_rng(0).permutation(len(names))[n : 2 * n])]
        found = []
        for source, member in enumerate(chosen):
            picture = Image.open(io.BytesIO(files.extractfile(member).read())).convert("RGB")
            kinds = ("original", *PICTURE_KINDS) if source < COPIED else ("original",)
            found += [
                (picture if kind == "original" else disturbed_picture(picture, kind, rng), source, kind)
                for kind in kinds
            ]
    pictures, sources, kinds = zip(*found, strict=True)
    return list(pictures), np.array(sources), np.array(kinds)


def posts_of(path, seed):
    """(texts, source of each, kind of each)."""
    csv.field_size_limit(2**31 - 1)
    rng = np.random.default_rng(seed)
    with open(path, newline="", encoding="utf-8") as file:
        posts = [row["body"].split() for row in csv.DictReader(file)]
    posts = [posts[row] for row in rng.permutation(len(posts))]
    posts = [words for words in posts if len(words) >= 30]
    chosen, others = posts[: SOURCES["texts"]], [word for words in posts[SOURCES["texts"] :] for word in words]
    found = []
    for source, words in enumerate(chosen):
        kinds = ("original", *TEXT_KINDS) if source < COPIED else ("original",)
        for kind in kinds:
            copy = words if kind == "original" else disturbed_text(words, kind, rng, others)
            found.append((" ".join(copy), source, kind))
    texts, sources, kinds = zip(*found, strict=True)
    return list(texts), np.array(sources), np.array(kinds)


def scored(similarity, usual, sources, kinds):
    """Precision and recall of all pairs at the usual threshold, and recall at the precision that is compared."""
    rows = np.tril_indices(len(sources), -1)
    values, true = similarity[rows], (sources[:, None] == sources[None])[rows]
    order = np.argsort(-values, kind="stable")
    hits = np.cumsum(true[order])
    precision = hits / np.arange(1, len(order) + 1)
    last = np.flatnonzero(np.diff(values[order], append=-np.inf))  # whole groups of equal values
    good = last[precision[last] >= PRECISION]
    best = int(good[-1]) if len(good) else None
    at_best = 0.0 if best is None else hits[best] / true.sum()
    close = values >= usual
    first = {source: row for row, (source, kind) in enumerate(zip(sources, kinds, strict=True)) if kind == "original"}
    per_kind = {
        str(kind): round(
            float(np.mean([similarity[row, first[sources[row]]] >= usual for row in np.flatnonzero(kinds == kind)])), 3
        )
        for kind in dict.fromkeys(kinds)
        if kind != "original"
    }
    return {
        "threshold": round(float(usual), 3),
        "pairs": int(close.sum()),
        "precision": round(float(true[close].mean()), 4) if close.any() else None,
        "recall": round(float(true[close].sum() / true.sum()), 4),
        "false_pairs": int((~true[close]).sum()),
        "unrelated_pairs": int((~true).sum()),
        "recall_at_precision": round(float(at_best), 4),
        "kinds": per_kind,
    }


def similarity_of(rows):
    rows = rows.astype(np.float32)
    return rows @ rows.T


def hamming_similarity(bits):
    signs = np.where(bits, 1, -1).astype(np.float32)
    return (signs @ signs.T - bits.shape[1]) / 2  # minus the number of differing bits


def hbmp_scores(X, sources, kinds, seconds):
    """deduplicate as users call it, scored by the pairs it returns and by its similarities."""
    start = time.process_time()
    found = hbmp.deduplicate(X)
    own = time.process_time() - start
    told = scored(similarity_of(Space(X).rows(X)), found.threshold, sources, kinds)
    assert abs(told["pairs"] - len(found.pairs)) <= max(3, 0.001 * len(found.pairs)), (told["pairs"], len(found.pairs))
    return {**told, "expected_false_pairs": found.expected_false_pairs, "cpu_s": round(seconds + own, 1)}


def run_pictures(tar, seed):
    import imagehash

    pictures, sources, kinds = pictures_of(tar, seed)
    results = {}
    for name, usual in (("phash", -10), ("dhash", -10)):
        start = time.process_time()
        bits = np.array([getattr(imagehash, name)(picture).hash.ravel() for picture in pictures])
        seconds = time.process_time() - start
        results[name] = {**scored(hamming_similarity(bits), usual, sources, kinds), "cpu_s": round(seconds, 1)}
        print(name, results[name])
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for row, picture in enumerate(pictures):
            files.append(f"{folder}/{row:05}.png")
            picture.save(files[-1])
        start = time.process_time()
        X = hbmp.encoders.get("efficientnet_lite0").encode(files)
        seconds = time.process_time() - start
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    results["backbone, cosine 0.9"] = {**scored(units @ units.T, 0.9, sources, kinds), "cpu_s": round(seconds, 1)}
    results["hbmp dedup"] = hbmp_scores(X, sources, kinds, seconds)
    return results


def run_texts(path, seed):
    from datasketch import MinHash

    texts, sources, kinds = posts_of(path, seed)
    start = time.process_time()
    signatures = []
    for text in texts:
        words = text.split()
        one = MinHash(num_perm=128)
        one.update_batch({" ".join(words[i : i + 3]).encode() for i in range(len(words) - 2)})
        signatures.append(one.hashvalues)
    hashes = np.array(signatures)
    seconds = time.process_time() - start
    shared = np.stack([(hashes == row).mean(axis=1) for row in hashes]).astype(np.float32)
    results = {}
    for usual in (0.5, 0.8):
        results[f"MinHash, Jaccard {usual}"] = {**scored(shared, usual, sources, kinds), "cpu_s": round(seconds, 1)}
    start = time.process_time()
    X = hbmp.encoders.get("wordllama").encode(texts)
    seconds = time.process_time() - start
    results["WordLlama, cosine 0.9"] = {**scored(similarity_of(X), 0.9, sources, kinds), "cpu_s": round(seconds, 1)}
    results["hbmp dedup"] = hbmp_scores(X, sources, kinds, seconds)
    return results


def run_scale(paths, most):
    """Pieces of 16 words of all posts."""
    csv.field_size_limit(2**31 - 1)
    pieces = []
    for path in paths:
        with open(path, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                words = row["body"].split()
                pieces += [" ".join(words[i : i + 16]) for i in range(0, len(words) - 15, 16)]
    pieces = [pieces[row] for row in np.random.default_rng(0).permutation(len(pieces))]
    start = time.process_time()
    X = hbmp.encoders.get("wordllama").encode(pieces[:most])
    results = {"pieces": len(X), "encoding_cpu_s": round(time.process_time() - start, 1)}
    list(pairs_within(np.zeros((10, 8), np.uint8), 1))  # compiles
    for n in (most // 4, most // 2, most):
        clock, wall = time.process_time(), time.perf_counter()
        found = hbmp.deduplicate(X[:n])
        rows = Space(X[:n]).rows(X[:n])
        n_bits = bits_on(rows, found.threshold, 0)
        results[str(n)] = {
            "cpu_s": round(time.process_time() - clock, 1),
            "wall_s": round(time.perf_counter() - wall, 1),
            "threshold": round(found.threshold, 3),
            "bits": n_bits,
            "radius": radius_for(found.threshold, n_bits),
            "candidates": found.n_candidates,
            "pairs": len(found.pairs),
            "removed": len(found.removed),
        }
        clock = time.process_time()
        calibrate(rows, rate=0.01 / n)
        results[str(n)]["calibration_cpu_s"] = round(time.process_time() - clock, 1)
        print(n, results[str(n)])
    return results


def run_vectors(path, n_items):
    """Items that are means of two rows of the file; the last hundredth repeats the first with noise of a tenth."""
    rows = np.load(path)[:, :128].astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rng, n_copies = np.random.default_rng(0), n_items // 100
    X = rows[rng.integers(0, len(rows), n_items)] + rows[rng.integers(0, len(rows), n_items)]
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    noise = rng.standard_normal((n_copies, X.shape[1]), dtype=np.float32) / np.float32(np.sqrt(X.shape[1]))
    X[-n_copies:] = X[:n_copies] + np.float32(0.1) * noise
    list(pairs_within(np.zeros((10, 8), np.uint8), 1))  # compiles
    clock, wall = time.process_time(), time.perf_counter()
    found = hbmp.deduplicate(X)
    told = {"items": n_items, "cpu_s": round(time.process_time() - clock, 1)}
    told["wall_s"] = round(time.perf_counter() - wall, 1)
    first, second = np.sort(found.pairs, axis=1).T
    copies = ((first < n_copies) & (second == first + n_items - n_copies)).sum()
    told |= {"threshold": round(found.threshold, 3), "candidates": found.n_candidates, "pairs": len(found.pairs)}
    told["copies_found"] = round(float(copies / n_copies), 4)
    print(told)
    return told


def table(results):
    """The results as Markdown."""
    lines = []
    for name in ("pictures", "texts"):
        if name not in results:
            continue
        lines += ["", f"| {name} | precision | recall | recall at precision {PRECISION} | false pairs | processor s |"]
        lines += ["|---|---|---|---|---|---|"]
        for method, told in results[name].items():
            lines.append(
                f"| {method} | {told['precision']:.3f} | {told['recall']:.3f} | {told['recall_at_precision']:.3f} | "
                f"{told['false_pairs']:,} of {told['unrelated_pairs']:,} | {told['cpu_s']} |"
            )
        kinds = list(next(iter(results[name].values()))["kinds"])
        lines += ["", f"| {name}, copy with original | {' | '.join(kinds)} |", f"|---|{'---|' * len(kinds)}"]
        for method, told in results[name].items():
            cells = " | ".join(f"{told['kinds'][kind]:.2f}" for kind in kinds)
            lines.append(f"| {method} | {cells} |")
    if "vectors" in results:
        told = results["vectors"]
        lines += [
            "",
            f"{told['items']:,} vectors: {told['wall_s']} s ({told['cpu_s']} s of processor time), {told['pairs']:,} "
            f"pairs among {told['candidates']:,} candidates, {told['copies_found']:.1%} of the copies found.",
        ]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("pictures", "texts", "scale", "vectors"))
    parser.add_argument("files", nargs="*")
    parser.add_argument("--seed", type=int, default=1, help="of the items and the copies (default: 1)")
    parser.add_argument("--items", type=int, default=200_000, help="most items of scale, and items of vectors")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if given.what == "pictures":
        results["pictures"] = run_pictures(given.files[0], given.seed)
    elif given.what == "texts":
        results["texts"] = run_texts(given.files[0], given.seed)
    elif given.what == "scale":
        results["scale"] = run_scale(given.files, given.items)
    elif given.what == "vectors":
        results["vectors"] = run_vectors(given.files[0], given.items)
    if given.what:
        results["machine"] = {"cores": os.cpu_count(), "seed": given.seed}
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    if given.table or given.what:
        print(table(results))


if __name__ == "__main__":
    main()

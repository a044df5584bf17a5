"""The encoder that a command line selects, checked against the kind of its data before any work begins."""

from __future__ import annotations

from hbmp import encoders
from hbmp._core import catalog
from hbmp.app.settings import read_value
from hbmp.encoders import Encoder
from hbmp.methods import make_piece

_DEFAULTS = {"texts": "wordllama", "images": "efficientnet_lite0"}


def encoder_of(takes: str, encoder: str | None, backbone: str | None = None, *, device: str = "auto") -> Encoder:
    """The encoder of --encoder or --backbone, or the default one for texts or images."""
    if encoder is not None and backbone is not None:
        raise ValueError("--encoder and --backbone both choose the encoder; pass only one of these options.")
    if backbone is not None and takes == "texts":
        raise ValueError("--backbone applies to pictures; choose a text encoder with --encoder.")
    name = read_value(encoder or backbone or _DEFAULTS[takes])
    if isinstance(name, list) and name[0] in catalog.names("encoders"):  # with settings: ["gist", {"size": 256}]
        found: Encoder = make_piece("encoders", name)
    elif isinstance(name, list):  # a backbone with settings: ["alexnet", {"pretrained": "alexnet.pth"}]
        found = encoders.get("image_backbone", backbone=make_piece("backbones", name))
    else:
        found = encoders.get(str(name))
    if isinstance(found, encoders.Custom):
        found.set_params(takes=takes)
    if found.takes != takes:
        kinds = {"images": "pictures", "texts": "texts"}
        raise ValueError(f"The encoder {name!r} is for {kinds[found.takes]}, and the data hold {kinds[takes]}.")
    if device != "auto" and "device" in found.get_params(deep=False):
        found.set_params(device=device)
    return found

"""A stand-in for timm with the four names that TimmModel calls, where timm itself cannot be imported."""

import types

from torch import nn


def make(calls: list):
    """The modules `timm` and `timm.data`; `calls` collects what models were asked for."""
    timm, data = types.ModuleType("timm"), types.ModuleType("timm.data")
    config = {"input_size": (3, 48, 48), "mean": (0.5, 0.4, 0.3), "std": (0.2, 0.25, 0.3), "crop_pct": 0.9}

    def create_model(name, *, pretrained, num_classes):
        calls.append((name, pretrained, num_classes))
        network = nn.Sequential(nn.Conv2d(3, 7, 3, stride=4), nn.BatchNorm2d(7), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        if pretrained:
            nn.init.constant_(network[0].weight, 0.5)
        return network

    timm.is_model = lambda name: name.startswith("resnet")
    timm.create_model = create_model
    timm.get_pretrained_cfg = lambda name: types.SimpleNamespace(to_dict=lambda: dict(config, architecture=name))
    data.resolve_data_config = lambda *, pretrained_cfg: {
        key: pretrained_cfg[key] for key in ("input_size", "mean", "std", "crop_pct")
    }
    timm.data = data
    return {"timm": timm, "timm.data": data}

"""The JSON of requests and responses, described in `/openapi.json`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Mode = Literal["plain", "weighted", "real"]


class Source(BaseModel):
    """One of: the id of an item, a vector of features, the scores of a code."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    id: int | None = Field(None, ge=0, le=2**63 - 1, description="an item of the database")
    vector: list[float] | None = Field(None, description="features, like those the model was fitted on")
    scores: list[float] | None = Field(None, description="scores of all bits, as /encode returns them")


class Query(Source):
    """A query, and the distance to search with."""

    k: int = Field(10, ge=1, description="number of neighbours")
    n_bits: int | None = Field(None, ge=1, description="compare only the first bits (default: all)")
    mode: Mode = Field("weighted", description="plain or weighted Hamming distance, or real-valued scores")


class Encoded(BaseModel):
    """The code of a query."""

    code: list[int] = Field(description="-1 or +1, one per bit")
    scores: list[float] | None = Field(description="before the sign; null for items without available features")
    weights: list[float] = Field(description="weight of each bit in the distance")
    milliseconds: float


class Neighbour(BaseModel):
    """One of the nearest items."""

    id: int
    distance: float
    label: str | None
    name: str | None = Field(description="its image file in the indexed folder, or null")
    relevant: bool | None = Field(description="whether it shares a label with the query; null if unknown")


class Milliseconds(BaseModel):
    """Time of the two steps on the server."""

    encode: float
    search: float


class Answer(BaseModel):
    """Neighbours, nearest first, and the code of the query."""

    n_bits: int
    mode: Mode
    code: list[int]
    scores: list[float] | None
    weights: list[float] = Field(description="of the first n_bits bits; ones in mode plain")
    results: list[Neighbour]
    milliseconds: Milliseconds


class Item(BaseModel):
    """An item of the database."""

    id: int
    label: str | None
    name: str | None = Field(description="its image file in the indexed folder, or null")
    code: list[int]
    features: list[float] | None
    picture: str = Field(description="path of its picture")


class Refusal(BaseModel):
    """The reason of a refusal, in one sentence."""

    detail: str


def body(model: type[BaseModel]) -> dict[str, Any]:
    """The OpenAPI description of a body: JSON, or a form with an image."""
    inner = model.model_json_schema()
    fields = {name: inner["properties"][name] for name in ("k", "n_bits", "mode") if name in inner["properties"]}
    image = {"type": "string", "format": "binary", "description": "JPEG, PNG, WebP, GIF or BMP"}
    form = {"type": "object", "required": ["image"], "properties": {"image": image, **fields}}
    example = {"id": 0} if model is Source else {"id": 0, "k": 5, "mode": "weighted"}
    content = {
        "application/json": {"schema": inner, "example": example},
        "multipart/form-data": {"schema": form},
    }
    return {"requestBody": {"required": True, "content": content}}

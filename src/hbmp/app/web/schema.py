"""The JSON of requests and answers, as `/openapi.json` describes it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Mode = Literal["plain", "weighted", "real"]


class Source(BaseModel):
    """Exactly one of: an item's id, a vector of features, the scores of a code."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    id: int | None = Field(None, ge=0, le=2**63 - 1, description="an item of the database")
    vector: list[float] | None = Field(None, description="features, as the model was fitted on")
    scores: list[float] | None = Field(None, description="scores of every bit, as /encode gives them")


class Question(Source):
    """A source, and how it is compared."""

    k: int = Field(10, ge=1, description="how many neighbours")
    n_bits: int | None = Field(None, ge=1, description="compare only the first bits; all where it is left out")
    mode: Mode = Field("weighted", description="plain or weighted Hamming distance, or real-valued scores")


class Encoded(BaseModel):
    """The code of a query."""

    code: list[int] = Field(description="-1 or +1, one a bit")
    scores: list[float] | None = Field(description="before the sign; null for items whose features are not at hand")
    weights: list[float] = Field(description="what a differing bit costs")
    milliseconds: float


class Neighbour(BaseModel):
    """One of the nearest items."""

    id: int
    distance: float
    label: str | None
    name: str | None = Field(description="its image file in the folder that was indexed; null where there is none")
    relevant: bool | None = Field(description="shares a label with the item asked for; null where that is not known")


class Milliseconds(BaseModel):
    """How long the two steps took on the server."""

    encode: float
    search: float


class Answer(BaseModel):
    """Neighbours, nearest first, and the code that found them."""

    n_bits: int
    mode: Mode
    code: list[int]
    scores: list[float] | None
    weights: list[float] = Field(description="of the first n_bits bits, ones in mode plain")
    results: list[Neighbour]
    milliseconds: Milliseconds


class Item(BaseModel):
    """An item of the database."""

    id: int
    label: str | None
    name: str | None = Field(description="its image file in the folder that was indexed; null where there is none")
    code: list[int]
    features: list[float] | None
    picture: str = Field(description="where its picture is")


class Refusal(BaseModel):
    """Why a request was not answered, in one sentence."""

    detail: str


def body(model: type[BaseModel]) -> dict[str, Any]:
    """How OpenAPI describes a body that is JSON, or a form with an image."""
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

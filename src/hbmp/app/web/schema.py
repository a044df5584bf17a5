"""The JSON of requests and responses, described in `/openapi.json`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

Mode = Literal["plain", "weighted", "real"]
Id = StrictInt | StrictStr
Scalar = StrictBool | StrictInt | StrictFloat | StrictStr
Where = dict[str, Scalar | list[Scalar] | dict[str, Scalar]]
Vector = list[float]

_WHERE = "conditions that all must hold: a value, a list of values, or a range such as {'>=': 10, '<': 20}"
_MODE = "plain or weighted Hamming distance, or real-valued scores; weighted by default, real with rescore"
_RESCORE = "rank this many nearest codes by the vectors that the database keeps"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Source(_Strict):
    """One of: the id of an item, a text, a vector of features, the scores of a code."""

    id: Id | None = Field(None, description="an item of the database")
    text: str | None = Field(None, description="a text, where the model has an encoder of texts")
    vector: Vector | None = Field(None, description="features, like those the model was fitted on")
    scores: list[float] | None = Field(None, description="scores of all bits, as /encode returns them")


class How(_Strict):
    """How to search."""

    k: int = Field(10, ge=1, description="number of neighbours")
    n_bits: int | None = Field(None, ge=1, description="compare only the first bits (default: all)")
    mode: Mode | None = Field(None, description=_MODE)
    where: Where | None = Field(None, description=_WHERE)
    rescore: int | None = Field(None, ge=1, description=_RESCORE)

    @property
    def compared(self) -> Mode:
        """The distance that is computed."""
        return self.mode or ("weighted" if self.rescore is None else "real")


class Query(How, Source):
    """A query, and the distance to search with."""


class Batch(How):
    """Many queries of one kind."""

    ids: list[Id] | None = Field(None, description="items of the database")
    texts: list[str] | None = Field(None, description="texts, where the model has an encoder of texts")
    vectors: list[Vector] | None = Field(None, description="features, like those the model was fitted on")
    scores: list[Vector] | None = Field(None, description="scores of all bits, as /encode returns them")


class NewItem(_Strict):
    """An item to add, by its vector or its text."""

    id: Id | None = Field(None, description="its id; the next free number without one")
    vector: Vector | None = Field(None, description="features, like those the model was fitted on")
    text: str | None = Field(None, description="a text, where the model has an encoder of texts")
    label: StrictInt | StrictStr | list[str] | None = Field(None, description="its class, or a list of labels")
    payload: dict[str, Any] | None = Field(None, description="texts, numbers, booleans, lists by column")


class Addition(_Strict):
    """Items to add, all or none."""

    items: Annotated[list[NewItem], Field(min_length=1)]
    replace: bool = Field(False, description="replace items that have one of these ids; otherwise they are refused")


class Removal(_Strict):
    """Items to remove: ids, conditions, or both."""

    ids: list[Id] | None = Field(None, description="ids; unknown ones are ignored")
    where: Where | None = Field(None, description=_WHERE)


class Changed(BaseModel):
    """The number of items that were added or removed, and that are there now."""

    changed: int
    items: int


class Encoded(BaseModel):
    """The code of a query."""

    code: list[int] = Field(description="-1 or +1, one per bit")
    scores: list[float] | None = Field(description="before the sign; null for items without available features")
    weights: list[float] = Field(description="weight of each bit in the distance")
    milliseconds: float


class Neighbour(BaseModel):
    """One of the nearest items."""

    id: int | str
    distance: float
    label: str | None
    name: str | None = Field(description="its image file in the indexed folder, or null")
    relevant: bool | None = Field(description="whether it shares a label with the query; null if unknown")
    payload: dict[str, Any] = Field(description="what it carries, by column")


class Milliseconds(BaseModel):
    """Time of the two steps on the server."""

    encode: float
    search: float


class Answer(BaseModel):
    """Neighbours, nearest first, and the code of the query."""

    n_bits: int
    mode: Mode
    metric: Literal["hamming", "cosine"] = Field(description="what the distances are: cosine if vectors rescored them")
    code: list[int]
    scores: list[float] | None
    weights: list[float] = Field(description="of the first n_bits bits; ones in mode plain")
    results: list[Neighbour]
    milliseconds: Milliseconds


class Answers(BaseModel):
    """Neighbours of each query, in the order of the queries."""

    n_bits: int
    mode: Mode
    metric: Literal["hamming", "cosine"]
    results: list[list[Neighbour]]
    milliseconds: Milliseconds


class Item(BaseModel):
    """An item of the database."""

    id: int | str
    label: str | None
    name: str | None = Field(description="its image file in the indexed folder, or null")
    payload: dict[str, Any]
    code: list[int]
    features: list[float] | None
    picture: str = Field(description="path of its picture")


class Refusal(BaseModel):
    """The reason of a refusal, in one sentence."""

    detail: str


_EXAMPLES: dict[type[BaseModel], dict[str, Any]] = {
    Source: {"id": 0},
    Query: {"id": 0, "k": 5, "mode": "weighted"},
    Batch: {"ids": [0, 1], "k": 5},
    Addition: {"items": [{"id": 5000, "vector": [0.5, -1.25], "label": "7", "payload": {"title": "a red shoe"}}]},
    Removal: {"where": {"brand": "sony", "price": {">=": 10}}},
}
_IN_FORMS = ("k", "n_bits", "mode", "rescore")


def body(model: type[BaseModel]) -> dict[str, Any]:
    """The OpenAPI description of a body: JSON, and for single queries a form with an image."""
    inner = model.model_json_schema()
    schema = _inlined(inner, inner.get("$defs", {}))
    content = {"application/json": {"schema": schema, "example": _EXAMPLES[model]}}
    if issubclass(model, Source):
        fields = {name: schema["properties"][name] for name in _IN_FORMS if name in schema["properties"]}
        image = {"type": "string", "format": "binary", "description": "JPEG, PNG, WebP, GIF or BMP"}
        form = {"type": "object", "required": ["image"], "properties": {"image": image, **fields}}
        content["multipart/form-data"] = {"schema": form}
    return {"requestBody": {"required": True, "content": content}}


def _inlined(part: Any, named: dict[str, Any]) -> Any:
    """A JSON schema without references."""
    if isinstance(part, list):
        return [_inlined(one, named) for one in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        return _inlined(named[part["$ref"].rpartition("/")[2]], named)
    return {name: _inlined(value, named) for name, value in part.items() if name != "$defs"}

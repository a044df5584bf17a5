"""A searchable collection in one file: codes, ids, labels, payload, and the model that encodes queries.

    db = hbmp.Database.build(model, X, ids=skus, payload=table, path="shop.db")
    distances, ids = db.search(queries, 10, where={"brand": "sony"})
    db.add(more, ids=…, payload=…); db.remove(ids); db.payload_of(ids)

`database_file` is the SQLite file, `blocks` the codes in it, and `contents` keeps the index in step with the file.
`place` puts a new file into place. `payload`, `labels`, `vectors` and `item_files` are the data of items, `where` is
their filter. `folder` reads databases of formats 1 and 2.
"""

from hbmp.database.database import Database
from hbmp.database.encoding import encode
from hbmp.database.item_files import ItemFiles
from hbmp.database.place import check_free, is_database

__all__ = ["Database", "ItemFiles", "check_free", "encode", "is_database"]

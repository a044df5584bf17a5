"""A database as the vector store of LangChain and of LlamaIndex, one file each.

    from hbmp.database.adapters.langchain import LangChainStore         # pip install 'hbmp[langchain]'
    from hbmp.database.adapters.llama_index import LlamaIndexStore      # pip install 'hbmp[llama-index]'

`documents` is what both share: texts and metadata as payload, and distances as similarities.
"""

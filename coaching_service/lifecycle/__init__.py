"""Operations on a client's or company's entire data: bulk changes, export, erasure and file cleanup."""

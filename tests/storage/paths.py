"""Hypothesis strategies for names, paths and URIs as users write them."""

from __future__ import annotations

from hypothesis import strategies as st

_LETTERS = st.one_of(
    st.sampled_from("ab. ~é\u0301\u1100\u1161Å\u212b"),
    st.characters(exclude_categories=["Cs"], exclude_characters='/\0\r\n",'),
)
NAMES = st.text(_LETTERS, min_size=1, max_size=6).filter(lambda name: name not in (".", ".."))
PATHS = st.lists(NAMES, min_size=1, max_size=4)
URIS = st.one_of(
    st.text(st.sampled_from("ab./:é"), max_size=14),
    st.text(st.sampled_from("ab./é"), max_size=12).map("gs://bucket/".__add__),
    st.text(max_size=12),
)

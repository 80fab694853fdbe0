//! Cost of calls in IC instructions, side by side with the relatives.

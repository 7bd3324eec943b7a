"""The paper reproduced: its ten figures, its table and its closure tests, beside what it says."""

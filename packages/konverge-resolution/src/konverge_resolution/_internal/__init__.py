"""Implementation of konverge-resolution. Private: each name can change in each release."""

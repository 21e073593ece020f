"""Implementation of konverge. Private: each name can change in each release."""

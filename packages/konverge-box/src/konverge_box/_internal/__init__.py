"""Implementation of konverge-box. Private: each name can change in each release."""

"""Implementation of konverge-cluster. Private: each name can change in each release."""

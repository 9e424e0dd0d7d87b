"""The experiments of the paper, with additional controls; run by `make paper`."""

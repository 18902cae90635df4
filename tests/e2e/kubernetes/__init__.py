"""A real Kubernetes control plane on loopback for end-to-end tests; README.md says what is real and what stands in."""

//! Controllers, kubelets and nodes.

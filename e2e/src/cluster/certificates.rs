//! Who may speak to whom: one authority, one certificate per component, kubeconfigs that carry them.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use serde_json::json;

use super::layout::{FIRST_SERVICE, Layout, NODE_ADDRESS};

/// The cluster's authority, and how its API server is reached.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// A new one; its certificate is `ca.pem`.
    pub fn create(layout: &Layout) -> Result<Self> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "windlass test cluster");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        fs::write(layout.at("ca.pem"), issuer.pem())?;
        Ok(Self { issuer })
    }

    /// The API server's certificate: `apiserver.pem` and `apiserver-key.pem`.
    pub fn server(&self, layout: &Layout) -> Result<()> {
        let names = ["127.0.0.1", NODE_ADDRESS, FIRST_SERVICE, "localhost", "kubernetes", "kubernetes.default.svc"];
        let mut params = CertificateParams::new(names.map(str::to_owned))?;
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(layout, "apiserver", &params)
    }

    /// A client's certificate.
    fn client(&self, layout: &Layout, file: &str, user: &str, group: Option<&str>) -> Result<()> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, user);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(layout, file, &params)
    }

    /// A kubeconfig for `user`, written to `file`.
    pub fn kubeconfig(&self, layout: &Layout, file: &str, server: &str, user: &str, group: Option<&str>) -> Result<()> {
        self.client(layout, file, user, group)?;
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "windlass", "cluster": {"server": server, "certificate-authority": layout.at("ca.pem")}}],
            "users": [{"name": user, "user": {
                "client-certificate": layout.at(&format!("{file}.pem")),
                "client-key": layout.at(&format!("{file}-key.pem")),
            }}],
            "contexts": [{"name": "windlass", "context": {"cluster": "windlass", "user": user}}],
            "current-context": "windlass",
        });
        private(&layout.at(file), &serde_json::to_string_pretty(&config)?)
    }

    fn sign(&self, layout: &Layout, name: &str, params: &CertificateParams) -> Result<()> {
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        fs::write(layout.at(&format!("{name}.pem")), certificate.pem())?;
        private(&layout.at(&format!("{name}-key.pem")), &key.serialize_pem())
    }
}

/// The keys with which ServiceAccount tokens are signed and checked.
pub fn signing_keys(layout: &Layout) -> Result<()> {
    let pair = KeyPair::generate()?;
    fs::write(layout.at("service-accounts.pem"), pair.public_key_pem())?;
    private(&layout.at("service-accounts-key.pem"), &pair.serialize_pem())
}

fn private(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("{} can't be written", file.display()))?;
    fs::set_permissions(file, fs::Permissions::from_mode(0o600))?;
    Ok(())
}

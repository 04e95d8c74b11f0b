package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"time"

	ct "github.com/google/certificate-transparency-go"
	cttls "github.com/google/certificate-transparency-go/tls"
	ctx509 "github.com/google/certificate-transparency-go/x509"
	"github.com/google/certificate-transparency-go/x509util"
	ssldsse "github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
)

// withTimestampedCertificate signs by a certificate that a log of certificates has vouched for, which the virtual Sigstore's never have.
func (b *bench) withTimestampedCertificate() error {
	top, topKey, err := ca.GenerateRootCa()
	if err != nil {
		return err
	}
	middle, middleKey, err := ca.GenerateFulcioIntermediate(top, topKey)
	if err != nil {
		return err
	}
	logKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	// The same but for the timestamps: what the log signs is the certificate without them.
	issue := func(more ...pkix.Extension) (*x509.Certificate, error) {
		template := &x509.Certificate{
			SerialNumber: big.NewInt(7), EmailAddresses: []string{identity}, NotBefore: time.Now(), NotAfter: time.Now().Add(10 * time.Minute),
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
			ExtraExtensions: append([]pkix.Extension{{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 1}, Value: []byte(issuer)}}, more...),
		}
		der, err := x509.CreateCertificate(rand.Reader, template, middle, key.Public(), middleKey)
		if err != nil {
			return nil, err
		}
		return x509.ParseCertificate(der)
	}
	bare, err := issue()
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(logKey.Public())
	if err != nil {
		return err
	}
	id := sha256.Sum256(der)
	stamp := ct.SignedCertificateTimestamp{SCTVersion: ct.V1, LogID: ct.LogID{KeyID: id}, Timestamp: uint64(time.Now().UnixMilli())}
	signed, err := ct.SerializeSCTSignatureInput(stamp, ct.LogEntry{Leaf: ct.MerkleTreeLeaf{
		Version: ct.V1, LeafType: ct.TimestampedEntryLeafType,
		TimestampedEntry: &ct.TimestampedEntry{EntryType: ct.PrecertLogEntryType, Timestamp: stamp.Timestamp, PrecertEntry: &ct.PreCert{
			IssuerKeyHash: sha256.Sum256(middle.RawSubjectPublicKeyInfo), TBSCertificate: bare.RawTBSCertificate,
		}},
	}})
	if err != nil {
		return err
	}
	signature, err := cttls.CreateSignature(*logKey, cttls.SHA256, signed)
	if err != nil {
		return err
	}
	stamp.Signature = ct.DigitallySigned(signature)
	list, err := x509util.MarshalSCTsIntoSCTList([]*ct.SignedCertificateTimestamp{&stamp})
	if err != nil {
		return err
	}
	raw, err := cttls.Marshal(*list)
	if err != nil {
		return err
	}
	value, err := asn1.Marshal(raw)
	if err != nil {
		return err
	}
	certificate, err := issue(pkix.Extension{Id: asn1.ObjectIdentifier(ctx509.OIDExtensionCTSCT), Value: value})
	if err != nil {
		return err
	}

	statement, err := statementFor(b.image, signPredicate)
	if err != nil {
		return err
	}
	const kind = "application/vnd.in-toto+json"
	hash := sha256.Sum256(ssldsse.PAE(kind, statement))
	proof, err := ecdsa.SignASN1(rand.Reader, key, hash[:])
	if err != nil {
		return err
	}
	envelope := &ssldsse.Envelope{PayloadType: kind, Payload: encode(statement), Signatures: []ssldsse.Signature{{Sig: encode(proof)}}}
	entry, err := b.virtual.GenerateTlogEntry(certificate, envelope, proof, time.Now().Unix(), true)
	if err != nil {
		return err
	}
	timestamp, err := b.virtual.TimestampResponse(proof)
	if err != nil {
		return err
	}
	candidate, err := b.assemble(certificate, envelope, entry, timestamp)
	if err != nil {
		return err
	}

	var trusted map[string]any
	if err := json.Unmarshal(roots["logs"], &trusted); err != nil {
		return err
	}
	mine, err := root.NewTrustedRoot(root.TrustedRootMediaType01,
		[]root.CertificateAuthority{&root.FulcioCertificateAuthority{
			Root: top, Intermediates: []*x509.Certificate{middle}, URI: "https://fulcio.localhost",
			ValidityPeriodStart: time.Now().Add(-time.Hour), ValidityPeriodEnd: time.Now().Add(time.Hour),
		}},
		map[string]*root.TransparencyLog{hex.EncodeToString(id[:]): {
			BaseURL: "https://certificates.localhost", ID: id[:], HashFunc: crypto.SHA256, SignatureHashFunc: crypto.SHA256,
			PublicKey: logKey.Public(), ValidityPeriodStart: time.Now().Add(-time.Hour), ValidityPeriodEnd: time.Now().Add(time.Hour),
		}}, nil, nil)
	if err != nil {
		return err
	}
	text, err := mine.MarshalJSON()
	if err != nil {
		return err
	}
	var authorities map[string]any
	if err := json.Unmarshal(text, &authorities); err != nil {
		return err
	}
	for _, part := range []string{"certificateAuthorities", "ctlogs"} {
		trusted[part] = authorities[part]
	}
	if roots["own"], err = json.Marshal(trusted); err != nil {
		return err
	}
	b.policies["identity-ct"] = Policy{Identity: identity, Issuer: issuer, TrustRoot: "own"}
	b.add("keyless-bundle-ct", byVirtual+"a statement by a certificate with an SCT, Rekor 1", "identity-ct", candidate)
	return nil
}

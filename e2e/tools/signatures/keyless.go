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
	"encoding/pem"
	"fmt"
	"math/big"
	"time"

	ct "github.com/google/certificate-transparency-go"
	cttls "github.com/google/certificate-transparency-go/tls"
	ctx509 "github.com/google/certificate-transparency-go/x509"
	"github.com/google/certificate-transparency-go/x509util"
	"github.com/google/go-containerregistry/pkg/name"
	ssldsse "github.com/secure-systems-lab/go-securesystemslib/dsse"
	cosignbundle "github.com/sigstore/cosign/v3/pkg/cosign/bundle"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	common "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature/payload"
	"google.golang.org/protobuf/encoding/protojson"
)

const byVirtual = "sigstore-go 1.2.2, virtual Sigstore: "

const (
	signPredicate = "https://sigstore.dev/cosign/sign/v1"
	sbomPredicate = "https://spdx.dev/Document"
)

// withoutKeys signs by certificates of the virtual Sigstore, in both layouts and for both generations of the log.
func (b *bench) withoutKeys() error {
	for _, wanted := range []struct {
		name, identity, issuer, policy string
		image                          name.Digest
	}{
		{"keyless-tag", identity, issuer, "identity", b.image},
		{"other-identity-tag", otherIdentity, issuer, "identity", b.image},
		{"other-issuer-tag", identity, otherIssuer, "identity", b.image},
		{"other-image-keyless-tag", identity, issuer, "identity", b.other},
	} {
		candidate, err := b.keylessTag(wanted.identity, wanted.issuer, wanted.image)
		if err != nil {
			return fmt.Errorf("%s: %w", wanted.name, err)
		}
		b.add(wanted.name, byVirtual+"a message, Rekor 1", wanted.policy, candidate)
	}
	for _, wanted := range []struct {
		name, identity, issuer, predicate, policy string
		image                                     name.Digest
		second                                    bool
	}{
		{"keyless-bundle", identity, issuer, signPredicate, "identity", b.image, false},
		{"keyless-bundle-log2", identity, issuer, signPredicate, "identity", b.image, true},
		{"other-identity-bundle", otherIdentity, issuer, signPredicate, "identity", b.image, false},
		{"other-issuer-bundle-log2", identity, otherIssuer, signPredicate, "identity", b.image, true},
		{"other-image-keyless-bundle", identity, issuer, signPredicate, "identity", b.other, false},
		{"sbom-keyless-bundle", identity, issuer, sbomPredicate, "identity", b.image, false},
	} {
		statement, err := statementFor(wanted.image, wanted.predicate)
		if err != nil {
			return err
		}
		var entity *ca.TestEntity
		generation := "Rekor 1"
		if wanted.second {
			generation = "Rekor 2"
			// No time: the second generation of the log has none.
			entity, err = b.virtual.AttestAtTimeHashedRekordV2(wanted.identity, wanted.issuer, statement, time.Unix(0, 0))
		} else {
			entity, err = b.virtual.AttestAtTime(wanted.identity, wanted.issuer, statement, now(), true)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", wanted.name, err)
		}
		candidate, err := b.bundleOf(entity)
		if err != nil {
			return fmt.Errorf("%s: %w", wanted.name, err)
		}
		b.add(wanted.name, byVirtual+"a statement, "+generation, wanted.policy, candidate)
	}
	return nil
}

func statementFor(image name.Digest, predicate string) ([]byte, error) {
	digest, err := hexadecimal(image.DigestStr()[len("sha256:"):])
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{
		"_type":         "https://in-toto.io/Statement/v1",
		"subject":       []any{map[string]any{"digest": map[string]string{"sha256": hex.EncodeToString(digest)}}},
		"predicateType": predicate,
		"predicate":     map[string]any{},
	})
}

func (b *bench) keylessTag(identity, issuer string, image name.Digest) (Candidate, error) {
	text, err := payload.Cosign{Image: image}.MarshalJSON()
	if err != nil {
		return Candidate{}, err
	}
	entity, err := b.virtual.SignAtTime(identity, issuer, text, now())
	if err != nil {
		return Candidate{}, err
	}
	certificate, signature, entry, timestamps, err := parts(entity)
	if err != nil {
		return Candidate{}, err
	}
	wire, err := b.whole(entry)
	if err != nil {
		return Candidate{}, err
	}
	promise, err := json.Marshal(cosignbundle.RekorBundle{
		SignedEntryTimestamp: wire.InclusionPromise.SignedEntryTimestamp,
		Payload: cosignbundle.RekorPayload{
			Body: encode(wire.CanonicalizedBody), IntegratedTime: wire.IntegratedTime, LogIndex: wire.LogIndex,
			LogID: hex.EncodeToString(wire.LogId.KeyId),
		},
	})
	if err != nil {
		return Candidate{}, err
	}
	stamp, err := json.Marshal(cosignbundle.RFC3161Timestamp{SignedRFC3161Timestamp: timestamps[0]})
	if err != nil {
		return Candidate{}, err
	}
	authority := b.virtual.FulcioCertificateAuthorities()[0].(*root.FulcioCertificateAuthority)
	return Candidate{Payload: string(text), Annotations: map[string]string{
		"dev.cosignproject.cosign/signature":   encode(signature.Signature()),
		"dev.sigstore.cosign/certificate":      inPEM(certificate),
		"dev.sigstore.cosign/chain":            inPEM(authority.Intermediates[0]) + inPEM(authority.Root),
		"dev.sigstore.cosign/bundle":           string(promise),
		"dev.sigstore.cosign/rfc3161timestamp": string(stamp),
	}}, nil
}

func parts(entity *ca.TestEntity) (*x509.Certificate, verify.SignatureContent, *tlog.Entry, [][]byte, error) {
	content, err := entity.VerificationContent()
	if err != nil {
		return nil, nil, nil, nil, err
	}
	signature, err := entity.SignatureContent()
	if err != nil {
		return nil, nil, nil, nil, err
	}
	entries, err := entity.TlogEntries()
	if err != nil {
		return nil, nil, nil, nil, err
	}
	timestamps, err := entity.Timestamps()
	return content.Certificate(), signature, entries[0], timestamps, err
}

// whole is the entry as it goes into a bundle. The virtual Sigstore's own lacks its kind and, for Rekor 1, the log's promise, which the
// virtual log signs once more.
func (b *bench) whole(entry *tlog.Entry) (*protorekor.TransparencyLogEntry, error) {
	wire := entry.TransparencyLogEntry()
	var body struct{ Kind, APIVersion string }
	if err := json.Unmarshal(wire.CanonicalizedBody, &body); err != nil {
		return nil, err
	}
	wire.KindVersion = &protorekor.KindVersion{Kind: body.Kind, Version: body.APIVersion}
	if entry.IsRekorV2() {
		return wire, nil
	}
	promise, err := b.virtual.RekorSignPayload(tlog.RekorPayload{
		Body: encode(wire.CanonicalizedBody), IntegratedTime: wire.IntegratedTime, LogIndex: wire.LogIndex, LogID: hex.EncodeToString(wire.LogId.KeyId),
	})
	wire.InclusionPromise = &protorekor.InclusionPromise{SignedEntryTimestamp: promise}
	return wire, err
}

func (b *bench) bundleOf(entity *ca.TestEntity) (Candidate, error) {
	certificate, signature, entry, timestamps, err := parts(entity)
	if err != nil {
		return Candidate{}, err
	}
	return b.assemble(certificate, signature.EnvelopeContent().RawEnvelope(), entry, timestamps[0])
}

func (b *bench) assemble(certificate *x509.Certificate, envelope *ssldsse.Envelope, entry *tlog.Entry, timestamp []byte) (Candidate, error) {
	body, err := envelope.DecodeB64Payload()
	if err != nil {
		return Candidate{}, err
	}
	signature, err := decode(envelope.Signatures[0].Sig)
	if err != nil {
		return Candidate{}, err
	}
	material := &protobundle.VerificationMaterial{
		Content: &protobundle.VerificationMaterial_Certificate{Certificate: &common.X509Certificate{RawBytes: certificate.Raw}},
		TimestampVerificationData: &protobundle.TimestampVerificationData{
			Rfc3161Timestamps: []*common.RFC3161SignedTimestamp{{SignedTimestamp: timestamp}},
		},
	}
	wire, err := b.whole(entry)
	if err != nil {
		return Candidate{}, err
	}
	material.TlogEntries = append(material.TlogEntries, wire)
	text, err := protojson.Marshal(&protobundle.Bundle{
		MediaType:            "application/vnd.dev.sigstore.bundle.v0.3+json",
		VerificationMaterial: material,
		Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
			Payload: body, PayloadType: envelope.PayloadType, Signatures: []*protodsse.Signature{{Sig: signature}},
		}},
	})
	return Candidate{Bundle: string(text)}, err
}

func inPEM(certificate *x509.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}))
}

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
			SerialNumber: big.NewInt(7), EmailAddresses: []string{identity}, NotBefore: now(), NotAfter: now().Add(10 * time.Minute),
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
	stamp := ct.SignedCertificateTimestamp{SCTVersion: ct.V1, LogID: ct.LogID{KeyID: id}, Timestamp: uint64(now().UnixMilli())}
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
	entry, err := b.virtual.GenerateTlogEntry(certificate, envelope, proof, now().Unix(), true)
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
			ValidityPeriodStart: now().Add(-time.Hour), ValidityPeriodEnd: now().Add(time.Hour),
		}},
		map[string]*root.TransparencyLog{hex.EncodeToString(id[:]): {
			BaseURL: "https://certificates.localhost", ID: id[:], HashFunc: crypto.SHA256, SignatureHashFunc: crypto.SHA256,
			PublicKey: logKey.Public(), ValidityPeriodStart: now().Add(-time.Hour), ValidityPeriodEnd: now().Add(time.Hour),
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

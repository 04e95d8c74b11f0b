package main

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"time"

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
			entity, err = b.virtual.AttestAtTime(wanted.identity, wanted.issuer, statement, time.Now(), true)
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
	digest, err := hex.DecodeString(image.DigestStr()[len("sha256:"):])
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
	entity, err := b.virtual.SignAtTime(identity, issuer, text, time.Now())
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
	signature, err := base64.StdEncoding.DecodeString(envelope.Signatures[0].Sig)
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

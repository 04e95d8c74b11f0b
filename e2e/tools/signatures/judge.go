package main

import (
	"bytes"
	"context"
	"crypto"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sort"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/sigstore/cosign/v3/pkg/cosign"
	ociremote "github.com/sigstore/cosign/v3/pkg/oci/remote"
	cosigntypes "github.com/sigstore/cosign/v3/pkg/types"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
)

// judge puts the candidate into a registry of its own, at its place beside the subject, and asks cosign.
func judge(subject string, candidate Candidate, policy Policy) (word, why string) {
	if err := accepts(subject, candidate, policy); err != nil {
		return "refuse", err.Error()
	}
	return "accept", ""
}

func accepts(subject string, candidate Candidate, policy Policy) error {
	ctx := context.Background()
	wire := inProcess{registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true))}
	image, err := name.NewDigest("registry.example/team/app@"+subject, name.Insecure)
	if err != nil {
		return err
	}
	options := []ociremote.Option{ociremote.WithRemoteOptions(remote.WithTransport(wire))}
	check := &cosign.CheckOpts{RegistryClientOpts: options, Offline: true, IgnoreTlog: true, IgnoreSCT: true, MaxWorkers: 1}
	if policy.TrustRoot != "" {
		trusted, err := root.NewTrustedRootFromJSON(roots[policy.TrustRoot])
		if err != nil {
			return err
		}
		check.TrustedMaterial = trusted
		check.IgnoreTlog = len(trusted.RekorLogs()) == 0
		check.IgnoreSCT = len(trusted.CTLogs()) == 0
		// Without a log, a timestamp is what tells when a certificate was used.
		check.UseSignedTimestamps = check.IgnoreTlog && policy.Key == ""
	}
	if policy.Key != "" {
		key, err := cryptoutils.UnmarshalPEMToPublicKey([]byte(policy.Key))
		if err != nil {
			return err
		}
		// SHA-256 is what `cosign verify --key` takes unless told otherwise.
		if check.SigVerifier, err = signature.LoadVerifier(key, crypto.SHA256); err != nil {
			return err
		}
	} else {
		check.Identities = []cosign.Identity{{Subject: policy.Identity, Issuer: policy.Issuer}}
	}

	if candidate.Bundle != "" {
		if err := put(wire, image, []byte(candidate.Bundle)); err != nil {
			return err
		}
		check.NewBundleFormat = true
		check.ClaimVerifier = cosign.IntotoSubjectClaimVerifier
		_, _, err = cosign.VerifyImageAttestations(ctx, image, check, name.Insecure)
		return err
	}
	layer := static.NewLayer([]byte(candidate.Payload), cosigntypes.SimpleSigningMediaType)
	signatures, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), mutate.Addendum{Layer: layer, Annotations: candidate.Annotations})
	if err != nil {
		return err
	}
	tag, err := ociremote.SignatureTag(image, options...)
	if err != nil {
		return err
	}
	if err := remote.Write(tag, signatures, remote.WithTransport(wire)); err != nil {
		panic(err)
	}
	check.ClaimVerifier = cosign.SimpleClaimVerifier
	_, _, err = cosign.VerifyImageSignatures(ctx, image, check)
	return err
}

// put writes a bundle as cosign does; the subject itself need not be there.
func put(wire http.RoundTripper, image name.Digest, bundle []byte) error {
	hash, err := v1.NewHash(image.DigestStr())
	if err != nil {
		return err
	}
	const mediaType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	referrer, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), mediaType), static.NewLayer(bundle, mediaType))
	if err != nil {
		return err
	}
	subject := v1.Descriptor{MediaType: types.OCIManifestSchema1, Digest: hash, Size: 1}
	referrer = mutate.Subject(referrer, subject).(v1.Image)
	digest, err := referrer.Digest()
	if err != nil {
		return err
	}
	return remote.Write(image.Context().Digest(digest.String()), referrer, remote.WithTransport(wire))
}

// inProcess sends requests to a handler without a network.
type inProcess struct{ handler http.Handler }

func (wire inProcess) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Body == nil {
		request.Body = io.NopCloser(bytes.NewReader(nil))
	}
	recorder := httptest.NewRecorder()
	wire.handler.ServeHTTP(recorder, request)
	response := recorder.Result()
	response.Request = request
	return response, nil
}

func sorted[V any](values map[string]V) []string {
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

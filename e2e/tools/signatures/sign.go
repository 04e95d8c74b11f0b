package main

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/sigstore/cosign/v3/cmd/cosign/cli"
	"github.com/sigstore/cosign/v3/pkg/cosign"
	ociremote "github.com/sigstore/cosign/v3/pkg/oci/remote"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/payload"
)

// What cosign is, by the version in go.mod.
const byCosign = "cosign 3.1.3: "

const (
	identity      = "release@example.com"
	otherIdentity = "somebody@example.com"
	issuer        = "https://login.example.com"
	otherIssuer   = "https://login.example.net"
)

// A bench is everything that signing needs: a registry with two images, keys, logs, and the virtual Sigstore.
type bench struct {
	folder   string
	host     string
	image    name.Digest
	other    name.Digest
	virtual  *ca.VirtualSigstore
	logOne   string
	logTwo   string
	fixtures []Fixture
	policies map[string]Policy
}

func sign(folder string) ([]Fixture, map[string]Policy, error) {
	b := &bench{folder: folder, policies: map[string]Policy{}}
	var err error
	if b.virtual, err = ca.NewVirtualSigstore(); err != nil {
		return nil, nil, err
	}
	store := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true)))
	defer store.Close()
	b.host = strings.TrimPrefix(store.URL, "http://")
	if b.image, err = b.push("team/app"); err != nil {
		return nil, nil, err
	}
	if b.other, err = b.push("team/other"); err != nil {
		return nil, nil, err
	}
	first := httptest.NewServer(firstLog(b.virtual))
	defer first.Close()
	second, err := newSecondLog()
	if err != nil {
		return nil, nil, err
	}
	secondServer := httptest.NewServer(second.handler())
	defer secondServer.Close()
	b.logOne, b.logTwo = first.URL, secondServer.URL

	if err := errors.Join(b.trust(second), b.withKeys(), b.withoutKeys(), b.withTimestampedCertificate()); err != nil {
		return nil, nil, err
	}
	return b.fixtures, b.policies, nil
}

func (b *bench) push(repository string) (name.Digest, error) {
	image, err := random.Image(64, 1)
	if err != nil {
		return name.Digest{}, err
	}
	digest, err := image.Digest()
	if err != nil {
		return name.Digest{}, err
	}
	reference, err := name.NewDigest(b.host+"/"+repository+"@"+digest.String(), name.Insecure)
	if err != nil {
		return name.Digest{}, err
	}
	return reference, remote.Write(reference, image)
}

// trust makes the trust roots: with both logs, with a log of certificates too, which none of the virtual Sigstore's is in, and without any.
func (b *bench) trust(second *secondLog) error {
	logs := maps.Clone(b.virtual.RekorLogs())
	for id, log := range logs {
		// The virtual Sigstore names the hexadecimal digits where others name the bytes.
		raw, err := hex.DecodeString(id)
		if err != nil {
			return err
		}
		log.ID = raw
	}
	id, log, err := second.trusted()
	if err != nil {
		return err
	}
	logs[id] = log
	certificateLogs := b.virtual.CTLogs()
	for id, log := range certificateLogs {
		raw, err := hex.DecodeString(id)
		if err != nil {
			return err
		}
		log.ID, log.BaseURL = raw, "https://certificates.localhost"
	}
	write := func(name string, certificateLogs, logs map[string]*root.TransparencyLog) error {
		trusted, err := root.NewTrustedRoot(root.TrustedRootMediaType01, b.virtual.FulcioCertificateAuthorities(), certificateLogs,
			b.virtual.TimestampingAuthorities(), logs)
		if err != nil {
			return err
		}
		text, err := trusted.MarshalJSON()
		roots[name] = text
		return err
	}
	if err := errors.Join(write("logs", nil, logs), write("logs-and-ct", certificateLogs, logs), write("no-log", nil, nil)); err != nil {
		return err
	}
	b.policies["identity"] = Policy{Identity: identity, Issuer: issuer, TrustRoot: "logs"}
	b.policies["identity-no-log"] = Policy{Identity: identity, Issuer: issuer, TrustRoot: "no-log"}
	b.policies["identity-sct"] = Policy{Identity: identity, Issuer: issuer, TrustRoot: "logs-and-ct"}
	b.policies["identity-other"] = Policy{Identity: otherIdentity, Issuer: issuer, TrustRoot: "logs"}
	b.policies["issuer-other"] = Policy{Identity: identity, Issuer: otherIssuer, TrustRoot: "logs"}
	return os.WriteFile(filepath.Join(b.folder, "root.json"), roots["logs"], 0o600)
}

// withKeys has cosign make keys and sign.
func (b *bench) withKeys() error {
	for _, kind := range []string{"key", "key-other", "rsa", "ed25519"} {
		if err := b.newKey(kind); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	none := filepath.Join(b.folder, "none.json")
	two := filepath.Join(b.folder, "two.json")
	const head = `{"mediaType":"application/vnd.dev.sigstore.signingconfig.v0.2+json"`
	if err := os.WriteFile(none, []byte(head+`}`), 0o600); err != nil {
		return err
	}
	service := fmt.Sprintf(`{"url":%q,"majorApiVersion":2,"validFor":{"start":"2020-01-01T00:00:00Z"},"operator":"test"}`, b.logTwo)
	if err := os.WriteFile(two, []byte(head+`,"rekorTlogUrls":[`+service+`],"rekorTlogConfig":{"selector":"ANY"}}`), 0o600); err != nil {
		return err
	}
	tag := []string{"--new-bundle-format=false", "--use-signing-config=false"}
	tagNoLog := append(tag, "--tlog-upload=false")
	tagLog := append(tag, "--rekor-url="+b.logOne)
	bundle := []string{"--signing-config=" + none, "--trusted-root=" + filepath.Join(b.folder, "root.json")}
	bundleLog := []string{"--use-signing-config=false", "--rekor-url=" + b.logOne}
	bundleLog2 := []string{"--signing-config=" + two, "--trusted-root=" + filepath.Join(b.folder, "root.json")}

	sbom := filepath.Join(b.folder, "sbom.json")
	if err := os.WriteFile(sbom, []byte(`{"spdxVersion":"SPDX-2.3","name":"app","packages":[]}`), 0o600); err != nil {
		return err
	}
	for _, wanted := range []struct {
		name, key, policy string
		image             name.Digest
		verb              []string
		flags             []string
	}{
		{"key-tag", "key", "key", b.image, []string{"sign"}, tagNoLog},
		{"key-tag-log", "key", "key-log", b.image, []string{"sign"}, tagLog},
		{"key-bundle", "key", "key", b.image, []string{"sign"}, bundle},
		{"key-bundle-log", "key", "key-log", b.image, []string{"sign"}, bundleLog},
		{"key-bundle-log2", "key", "key-log", b.image, []string{"sign"}, bundleLog2},
		{"rsa-tag", "rsa", "rsa", b.image, []string{"sign"}, tagNoLog},
		{"rsa-tag-log", "rsa", "rsa-log", b.image, []string{"sign"}, tagLog},
		{"rsa-bundle-log", "rsa", "rsa-log", b.image, []string{"sign"}, bundleLog},
		{"ed25519-tag", "ed25519", "ed25519", b.image, []string{"sign"}, tagNoLog},
		// Not as a bundle: cosign signs a hash there with such a key, and refuses its own signature.
		{"other-key-tag", "key-other", "key", b.image, []string{"sign"}, tagNoLog},
		{"other-key-bundle-log", "key-other", "key-log", b.image, []string{"sign"}, bundleLog},
		{"other-image-tag", "key", "key", b.other, []string{"sign"}, tagNoLog},
		{"other-image-bundle-log", "key", "key-log", b.other, []string{"sign"}, bundleLog},
		{"sbom-bundle", "key", "key", b.image, []string{"attest", "--type=spdxjson", "--predicate=" + sbom}, bundle},
		{"sbom-bundle-log", "key", "key-log", b.image, []string{"attest", "--type=spdxjson", "--predicate=" + sbom}, bundleLog},
	} {
		arguments := append(append([]string{}, wanted.verb...), wanted.flags...)
		shown := strings.Join(append(append([]string{}, wanted.verb...), named(wanted.flags)...), " ")
		candidate, err := b.cosign(wanted.key, wanted.image, arguments)
		if err != nil {
			return fmt.Errorf("%s: %w", wanted.name, err)
		}
		b.add(wanted.name, byCosign+shown, wanted.policy, candidate)
	}
	return b.plainEd25519()
}

// plainEd25519 signs as cosign 2 did with such a key. Since cosign 3 signs a hash of the message instead, `cosign verify` refuses what
// `cosign sign` makes with it.
func (b *bench) plainEd25519() error {
	text, err := payload.Cosign{Image: b.image}.MarshalJSON()
	if err != nil {
		return err
	}
	file, err := os.ReadFile(filepath.Join(b.folder, "ed25519.pem"))
	if err != nil {
		return err
	}
	block, _ := pem.Decode(file)
	private, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return err
	}
	signer, err := signature.LoadSigner(private, crypto.SHA256)
	if err != nil {
		return err
	}
	made, err := signer.SignMessage(bytes.NewReader(text))
	b.add("ed25519-plain-tag", "sigstore 1.10.8: SignMessage", "ed25519", Candidate{
		Payload: string(text), Annotations: map[string]string{"dev.cosignproject.cosign/signature": encode(made)},
	})
	return err
}

// named leaves out of flags what differs from run to run.
func named(flags []string) []string {
	var shown []string
	for _, flag := range flags {
		name, value, _ := strings.Cut(flag, "=")
		if strings.ContainsAny(value, "/:") {
			flag = name
		}
		shown = append(shown, flag)
	}
	return shown
}

func (b *bench) add(name, madeBy, policy string, candidate Candidate) {
	b.fixtures = append(b.fixtures, Fixture{Name: name, MadeBy: madeBy, Subject: b.image.DigestStr(), Policy: policy, Candidate: candidate})
}

func (b *bench) newKey(kind string) error {
	password := func(bool) ([]byte, error) { return nil, nil }
	var keys *cosign.KeysBytes
	var err error
	var private crypto.PrivateKey
	switch kind {
	case "rsa":
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	case "ed25519":
		_, private, err = ed25519.GenerateKey(rand.Reader)
	default:
		keys, err = cosign.GenerateKeyPair(password)
	}
	if err != nil {
		return err
	}
	if private != nil {
		der, err := x509.MarshalPKCS8PrivateKey(private)
		if err != nil {
			return err
		}
		path := filepath.Join(b.folder, kind+".pem")
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
			return err
		}
		if keys, err = cosign.ImportKeyPair(path, password); err != nil {
			return err
		}
	}
	b.policies[kind] = Policy{Key: string(keys.PublicBytes)}
	b.policies[kind+"-log"] = Policy{Key: string(keys.PublicBytes), TrustRoot: "logs"}
	return os.WriteFile(filepath.Join(b.folder, kind), keys.PrivateBytes, 0o600)
}

// cosign runs the command itself, and takes what it wrote out of the registry.
func (b *bench) cosign(key string, image name.Digest, arguments []string) (Candidate, error) {
	if err := os.Setenv("COSIGN_PASSWORD", ""); err != nil {
		return Candidate{}, err
	}
	before, err := b.referrers(image)
	if err != nil {
		return Candidate{}, err
	}
	tag, err := ociremote.SignatureTag(image)
	if err != nil {
		return Candidate{}, err
	}
	_ = remote.Delete(tag)
	command := cli.New()
	command.SetArgs(append(arguments, "--key="+filepath.Join(b.folder, key), "--yes", "--allow-http-registry", image.String()))
	// It sets the standard output to nothing when it ends.
	output := os.Stdout
	err = command.ExecuteContext(context.Background())
	os.Stdout = output
	if err != nil {
		return Candidate{}, err
	}
	after, err := b.referrers(image)
	if err != nil {
		return Candidate{}, err
	}
	for _, digest := range after {
		if !contains(before, digest) {
			text, _, err := onlyLayer(image.Context().Digest(digest.String()))
			return Candidate{Bundle: string(text)}, err
		}
	}
	text, annotations, err := onlyLayer(tag)
	return Candidate{Payload: string(text), Annotations: annotations}, err
}

func (b *bench) referrers(image name.Digest) ([]v1.Hash, error) {
	index, err := remote.Referrers(image)
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	var digests []v1.Hash
	for _, descriptor := range manifest.Manifests {
		digests = append(digests, descriptor.Digest)
	}
	return digests, nil
}

func contains(digests []v1.Hash, wanted v1.Hash) bool {
	for _, digest := range digests {
		if digest == wanted {
			return true
		}
	}
	return false
}

func onlyLayer(reference name.Reference) ([]byte, map[string]string, error) {
	image, err := remote.Image(reference)
	if err != nil {
		return nil, nil, err
	}
	manifest, err := image.Manifest()
	if err != nil {
		return nil, nil, err
	}
	layers, err := image.Layers()
	if err != nil {
		return nil, nil, err
	}
	if len(layers) != 1 {
		return nil, nil, fmt.Errorf("%s has %d layers", reference, len(layers))
	}
	reader, err := layers[0].Compressed()
	if err != nil {
		return nil, nil, err
	}
	defer reader.Close()
	text, err := io.ReadAll(reader)
	return text, manifest.Layers[0].Annotations, err
}

func encode(bytes []byte) string { return base64.StdEncoding.EncodeToString(bytes) }

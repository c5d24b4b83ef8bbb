package secret_test

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reeve-run/reeve/secret"
)

// draw is n characters of an alphabet, always the same for one seed.
func draw(seed uint64, n int, of string) string {
	r := rand.New(rand.NewPCG(seed, 7))
	b := make([]byte, n)
	for i := range b {
		b[i] = of[r.IntN(len(of))]
	}
	return string(b)
}

const (
	alnum = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	hexes = "0123456789abcdef"
)

// planted are keys as their issuers write them, put together here so that no key
// stands in a file.
func planted(seed uint64) map[string]string {
	j := func(parts ...string) string { return strings.Join(parts, "") }
	a := func(n int) string { return draw(seed, n, alnum) }
	h := func(n int) string { return draw(seed, n, hexes) }
	return map[string]string{
		"aws":            j("AK", "IA", draw(seed, 16, upper)),
		"aws temporary":  j("AS", "IA", draw(seed, 16, upper)),
		"github classic": j("gh", "p_", a(36)),
		"github app":     j("gh", "s_", a(36)),
		"github fine":    j("github", "_pat_", a(22), "_", a(59)),
		"gitlab":         j("gl", "pat-", a(20)),
		"slack bot":      j("xo", "xb-", "2147483647-", "2147483647123-", a(24)),
		"slack app":      j("xa", "pp-1-", a(30)),
		"stripe":         j("sk", "_live_", a(24)),
		"stripe webhook": j("wh", "sec_", a(32)),
		"anthropic":      j("sk-", "ant-api03-", a(95)),
		"openai project": j("sk-", "proj-", a(48)),
		"openai":         j("sk", "-", a(48)),
		"google api":     j("AI", "za", a(35)),
		"google oauth":   j("GOC", "SPX-", a(28)),
		"sendgrid":       j("SG", ".", a(22), ".", a(43)),
		"npm":            j("np", "m_", a(36)),
		"pypi":           j("py", "pi-AgE", a(60)),
		"digitalocean":   j("do", "p_v1_", h(64)),
		"huggingface":    j("h", "f_", a(34)),
		"shopify":        j("shp", "at_", h(32)),
		"square":         j("sq0", "atp-", a(22)),
		"mailgun":        j("ke", "y-", h(32)),
		"databricks":     j("da", "pi", h(32)),
		"linear":         j("lin", "_api_", a(40)),
		"grafana":        j("gl", "sa_", a(32), "_", h(8)),
		"vault":          j("hv", "s.", a(24)),
		"age":            j("AGE-SECRET-", "KEY-1", draw(seed, 58, upper)),
		"groq":           j("gs", "k_", a(52)),
		"telegram":       j("12345678", "90:", "AA", a(33)),
		"twilio":         j("S", "K", h(32)),
		"jwt":            j("ey", "JhbGciOiJIUzI1NiJ9", ".ey", "JzdWIiOiIxMjM0NSJ9.", a(43)),
		"url":            j("postgres://app:", a(14), "@db.internal/x"),
		"pem":            j("-----BEG", "IN RSA PRIV", "ATE KEY-----\n", a(64), "\n-----END RSA ", "PRIVATE KEY-----"),
		"assigned":       j("pass", "word = \"", a(12), "\""),
		"labelled hex":   j("api_key: ", h(40)),
		"aws secret":     j("aws_secret_access_key=", a(40)),
		"bearer":         j("Authorization: Bearer ", a(40)),
		"json":           j(`{"clientSecret": "`, a(32), `"}`),
		"azure":          j("AccountKey=", a(86), "=="),
	}
}

func TestPlantedKeysAreFound(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-170 VD-171")
	missed, all := 0, 0
	for seed := range uint64(25) {
		for name, key := range planted(seed) {
			for where, text := range map[string]string{
				"alone": key, "in prose": "Please use " + key + " for the deployment.", "in code": "x = f(" + key + ")\n", "behind umlauts": "Schlüsselä" + key + "ü",
			} {
				all++
				found := secret.Scan(text)
				if len(found) == 0 {
					missed++
					t.Errorf("%s, %s: not found: %s", name, where, text)
					continue
				}
				if f := found[0]; strings.Contains(f.Excerpt, text[f.Start:f.End]) || len(f.Excerpt) > 40 {
					t.Errorf("%s: the excerpt gives it away: %s", name, f.Excerpt)
				}
				if m := secret.Mask(text); strings.Contains(m, text[found[0].Start:found[0].End]) {
					t.Errorf("%s: masked as %q", name, m)
				}
			}
		}
	}
	t.Logf("%d of %d planted keys missed", missed, all)
}

// What is no secret passes: prose about secrets, code that handles them, identifiers,
// digests, and all of this project's own sources and lock files.
func TestOrdinaryTextPasses(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-172")
	for _, text := range []string{
		"",
		"The secret of good tests is that the key question is asked first; auth comes later.",
		"Rotate the API key every month and keep the password in the vault.",
		"id 550e8400-e29b-41d4-a716-446655440000, key 550e8400-e29b-41d4-a716-446655440000",
		"sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 of nothing",
		"commit key change in 9fceb02d0ae598e95dc970b74767f19372d61af8",
		"golang.org/x/crypto v0.31.0 h1:ihbySMvVjLAeSH1IbfcRTkD/iNscyz8rGzjF/E5hV6U=",
		`"integrity": "sha512-9E/O7pAbY5d4a1FzYt5zXx1T6Hf2u5GJ8Q7a2q0j6v3mGzN9r1B1cD3eF5gH7iJ9kL1mN3oP5qR7sT9uV1wX3=="`,
		"for key, value in settings.items(): print(key, value)",
		"token := scanner.nextToken()", "password := os.Getenv(\"DB_PASSWORD\")", "api_key = config.get('service.api_key')",
		"apiKey: process.env.SERVICE_API_KEY,", "secret = file:/run/secrets/database_password",
		"key=value", "password: required", "token: <your token>", "password = \"changeme\"", "https://user:password@example.com/",
		"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
		"keyboard shortcuts, monkey patching, hockey and authors", "primary key (tenant_id, created_at_timestamp_2024)",
		"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
		"SKIPPED_BECAUSE_OF_A_LONG_NAME_THAT_IS_NO_KEY", "sk-learn and sk-image are packages", "task-based scheduling of disk-intensive work",
		"cell_0i00l7edui0k in session ws-18058-45011c, act_01a22f4aa8fc7a35a510344fc008f873",
		"See internal/keyring/authentication/credentials_provider_test.go line 42",
		"const maxKeyLength = 4096 // bytes; see https://docs.example.com/auth/keys/rotation-policy-2024",
	} {
		if found := secret.Scan(text); len(found) > 0 {
			t.Errorf("%+v in %q", found, text)
		}
	}
}

func TestThisProjectsSourcesPass(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-172")
	files, bytes := 0, 0
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata") {
			return fs.SkipDir
		}
		switch filepath.Ext(name) {
		case ".go", ".py", ".md", ".sum", ".mod", ".cedar", ".toml", ".sh":
		default:
			return nil
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		files, bytes = files+1, bytes+len(b)
		for _, f := range secret.Scan(string(b)) {
			t.Errorf("%s: %s %s in %q", name, f.Detector, f.Excerpt, string(b[max(0, f.Start-40):f.End]))
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Fatal(files, err)
	}
	t.Logf("%d files, %d bytes", files, bytes)
}

func FuzzScan(f *testing.F) {
	for _, key := range planted(1) {
		f.Add(key)
	}
	f.Add("key=\x00\xff://:@")
	f.Fuzz(func(t *testing.T, text string) {
		at := 0
		for _, found := range secret.Scan(text) {
			if found.Start < at || found.End <= found.Start || found.End > len(text) {
				t.Fatalf("%+v in %d bytes after %d", found, len(text), at)
			}
			at = found.End
		}
		secret.Mask(text)
	})
}

func BenchmarkScan(b *testing.B) {
	text := strings.Repeat("Rotate the API key every month; see internal/auth/keys.go and commit 9fceb02d0ae598e95dc970b74767f19372d61af8.\n", 9000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if len(secret.Scan(text)) != 0 {
			b.Fatal("found one")
		}
	}
}

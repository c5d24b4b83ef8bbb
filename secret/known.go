package secret

import "strings"

// shape is how an issuer writes its keys: a prefix, then at least min and, unless
// max is 0, at most max bytes of an alphabet.
type shape struct {
	detector string
	prefix   string
	min, max int
	of       *[256]bool
	upper    bool // the body has an upper-case letter and a digit: told from words
}

func alphabet(text string) *[256]bool {
	var set [256]bool
	for i := 0; i < len(text); i++ {
		if i+2 < len(text) && text[i+1] == '-' {
			for c := int(text[i]); c <= int(text[i+2]); c++ {
				set[c] = true
			}
			i += 2
			continue
		}
		set[text[i]] = true
	}
	return &set
}

var (
	alnum    = alphabet("A-Za-z0-9")
	word     = alphabet("A-Za-z0-9_")
	wordDash = alphabet("A-Za-z0-9_-")
	upper    = alphabet("A-Z0-9")
	hexLower = alphabet("a-f0-9")
	base64s  = alphabet("A-Za-z0-9+/=_-")
	digits   = alphabet("0-9")
)

// shapes are the keys that are told by how they begin. The lengths are those that
// the issuers document or that their keys have had for years.
var shapes = []shape{
	{"aws_access_key", "AKIA", 16, 16, upper, false},
	{"aws_access_key", "ASIA", 16, 16, upper, false},
	{"github_token", "ghp_", 36, 255, alnum, false},
	{"github_token", "gho_", 36, 255, alnum, false},
	{"github_token", "ghu_", 36, 255, alnum, false},
	{"github_token", "ghs_", 36, 255, alnum, false},
	{"github_token", "ghr_", 36, 255, alnum, false},
	{"github_token", "github_pat_", 60, 255, word, false},
	{"gitlab_token", "glpat-", 20, 0, wordDash, false},
	{"gitlab_token", "gldt-", 20, 0, wordDash, false},
	{"gitlab_token", "glrt-", 20, 0, wordDash, false},
	{"slack_token", "xoxb-", 20, 0, wordDash, false},
	{"slack_token", "xoxp-", 20, 0, wordDash, false},
	{"slack_token", "xoxa-", 20, 0, wordDash, false},
	{"slack_token", "xoxs-", 20, 0, wordDash, false},
	{"slack_token", "xapp-", 20, 0, wordDash, false},
	{"stripe_key", "sk_live_", 16, 0, alnum, false},
	{"stripe_key", "rk_live_", 16, 0, alnum, false},
	{"stripe_key", "sk_test_", 16, 0, alnum, false},
	{"stripe_key", "whsec_", 24, 0, alnum, false},
	{"anthropic_key", "sk-ant-", 32, 0, wordDash, false},
	{"openai_key", "sk-proj-", 32, 0, wordDash, false},
	{"openai_key", "sk-svcacct-", 32, 0, wordDash, false},
	{"openrouter_key", "sk-or-v1-", 32, 0, hexLower, false},
	{"openai_key", "sk-", 40, 0, alnum, true},
	{"google_api_key", "AIza", 35, 35, wordDash, false},
	{"google_oauth", "ya29.", 32, 0, wordDash, false},
	{"google_oauth", "GOCSPX-", 24, 0, wordDash, false},
	{"twilio_key", "SK", 32, 32, hexLower, false},
	{"sendgrid_key", "SG.", 40, 0, alphabet("A-Za-z0-9_.-"), false},
	{"npm_token", "npm_", 36, 36, alnum, false},
	{"pypi_token", "pypi-AgE", 50, 0, wordDash, false},
	{"digitalocean_token", "dop_v1_", 64, 64, hexLower, false},
	{"digitalocean_token", "doo_v1_", 64, 64, hexLower, false},
	{"huggingface_token", "hf_", 30, 0, alnum, true},
	{"shopify_token", "shpat_", 32, 32, alphabet("a-fA-F0-9"), false},
	{"shopify_token", "shpss_", 32, 32, alphabet("a-fA-F0-9"), false},
	{"square_token", "sq0atp-", 22, 0, wordDash, false},
	{"square_token", "sq0csp-", 43, 0, wordDash, false},
	{"square_token", "EAAA", 60, 60, wordDash, true},
	{"mailgun_key", "key-", 32, 32, hexLower, false},
	{"mailchimp_key", "md-", 22, 22, wordDash, true},
	{"databricks_token", "dapi", 32, 36, alphabet("a-f0-9-"), false},
	{"postman_key", "PMAK-", 50, 0, alphabet("a-f0-9-"), false},
	{"linear_key", "lin_api_", 40, 40, alnum, false},
	{"grafana_token", "glsa_", 40, 0, word, false},
	{"vault_token", "hvs.", 24, 0, wordDash, false},
	{"vault_token", "hvb.", 24, 0, wordDash, false},
	{"doppler_token", "dp.pt.", 40, 0, alnum, false},
	{"age_key", "AGE-SECRET-KEY-1", 58, 58, upper, false},
	{"cloudflare_ca_key", "v1.0-", 140, 0, alphabet("a-f0-9-"), false},
	{"replicate_token", "r8_", 37, 37, alnum, true},
	{"groq_key", "gsk_", 48, 0, alnum, false},
	{"xai_key", "xai-", 70, 0, alnum, false},
	{"perplexity_key", "pplx-", 40, 0, alnum, false},
	{"jwt", "eyJ", 0, 0, nil, false},
}

// byFirst are the shapes by their first byte.
var byFirst = func() (index [256][]*shape) {
	for i := range shapes {
		first := shapes[i].prefix[0]
		index[first] = append(index[first], &shapes[i])
	}
	return index
}()

// known finds a key of a known shape in the run [start, end). A key begins where a
// word does: behind a letter or digit its prefix is part of something else.
func known(text string, start, end int) (detector string, from, to int, ok bool) {
	for at := start; at < end; at++ {
		if at > start && alnum[text[at-1]] {
			continue
		}
		for _, s := range byFirst[text[at]] {
			if to, ok := s.match(text[at:end]); ok {
				return s.detector, at, at + to, true
			}
		}
		if to, ok := botToken(text[at:end]); ok {
			return "telegram_token", at, at + to, true
		}
	}
	if from, to, ok := userInfo(text, start, end); ok {
		return "url_credentials", from, to, true
	}
	return "", 0, 0, false
}

func (s *shape) match(run string) (int, bool) {
	if !strings.HasPrefix(run, s.prefix) {
		return 0, false
	}
	if s.of == nil {
		return webToken(run)
	}
	body := run[len(s.prefix):]
	if s.max > 0 {
		body = body[:min(len(body), s.max+1)] // more is too long, however much it is
	}
	n := span(body, s.of)
	if n < s.min || s.max > 0 && n > s.max || s.upper && !mixed(body[:n]) || monotone(body[:n]) {
		return 0, false
	}
	return len(s.prefix) + n, true
}

func span(text string, of *[256]bool) int {
	n := 0
	for n < len(text) && of[text[n]] {
		n++
	}
	return n
}

// mixed reports whether s has both an upper-case letter and a digit.
func mixed(s string) bool {
	return strings.ContainsAny(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") && strings.ContainsAny(s, "0123456789")
}

// monotone reports whether s is a filler such as xxxx or 0000, of which examples are
// made.
func monotone(s string) bool { return s != "" && strings.Trim(s, s[:1]) == "" }

// webToken is a JSON web token: three parts of base64, the first two of JSON objects.
func webToken(run string) (int, bool) {
	parts := strings.SplitN(run, ".", 4)
	if len(parts) < 3 || !strings.HasPrefix(parts[1], "eyJ") {
		return 0, false
	}
	n := 0
	for i, p := range parts[:3] {
		k := span(p, base64s)
		if k < 8 || i < 2 && k < len(p) {
			return 0, false
		}
		n += k + 1
	}
	return n - 1, true
}

// botToken is a Telegram bot's: eight to ten digits, a colon and 35 characters that
// begin with AA.
func botToken(run string) (int, bool) {
	n := span(run, digits)
	if n < 8 || n > 10 || !strings.HasPrefix(run[n:], ":AA") {
		return 0, false
	}
	if k := span(run[n+1:], wordDash); k == 35 {
		return n + 1 + k, true
	}
	return 0, false
}

// userInfo is the password in scheme://user:password@host. Placeholders such as
// user:password are passed over.
func userInfo(text string, start, end int) (from, to int, ok bool) {
	run := text[start:end]
	i := strings.Index(run, "://")
	if i < 1 {
		return 0, 0, false
	}
	rest := run[i+3:]
	at := strings.IndexByte(rest, '@')
	colon := strings.IndexByte(rest, ':')
	slash := strings.IndexByte(rest, '/')
	if colon < 0 || at < colon || slash >= 0 && slash < at {
		return 0, 0, false
	}
	password := rest[colon+1 : at]
	if len(password) < 4 || placeholder(password) {
		return 0, 0, false
	}
	from = start + i + 3 + colon + 1
	return from, from + len(password), true
}

// pem is a private key block that begins in the run at start.
func pem(text string, start int) (from, to int, ok bool) {
	const head = "-----BEGIN "
	if !strings.HasPrefix(text[start:], head) {
		return 0, 0, false
	}
	line := text[start:]
	if i := strings.IndexByte(line[len(head):], '-'); i >= 0 && i < 64 {
		label := line[len(head) : len(head)+i]
		if strings.HasSuffix(label, "PRIVATE KEY") || strings.HasSuffix(label, "PRIVATE KEY BLOCK") {
			to = start + len(head) + i
			if j := strings.Index(text[to:], "-----END "); j >= 0 {
				to += j
			} else {
				to = len(text)
			}
			return start, to, true
		}
	}
	return 0, 0, false
}

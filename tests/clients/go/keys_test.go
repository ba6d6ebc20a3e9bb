package clients

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"testing"
)

func newKeys(t *testing.T) keys {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	public, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	must(t, err)
	return keys{
		public:  pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
		private: pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private)}),
	}
}

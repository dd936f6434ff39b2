// An OpenID provider for tests/it/security/sso.rs, on loopback:
//
//   node provider.mjs FOLDER NOW REDIRECT..
//
// FOLDER holds node_modules with oidc-provider, NOW is the moment at which its clock begins (in
// milliseconds), REDIRECT are the addresses that it sends browsers back to. The first line that it
// prints is its issuer. Whoever signs in types a name of /test/people and any password.
//
// What a test makes it do, each by POST with a JSON body: /test/people sets who there is and what is
// said of them, /test/clock sets the clock, /test/keys gives it new keys under new ids, and
// /test/token changes the claims of every ID token from then on, or how it is signed: "key" (one of
// somebody else), "secret" (HS256 with the client's secret), "none".

import { createHmac, createSign, generateKeyPairSync, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [folder, now, ...redirects] = process.argv.slice(2);
const SECRET = 'a secret between the desk and the provider';

// Before the provider is loaded: nothing in it may see the machine's time.
const Machine = Date;
let offset = Number(now) - Machine.now();
globalThis.Date = class extends Machine {
  constructor(...given) {
    if (given.length > 0) super(...given);
    else super(Machine.now() + offset);
  }
  static now() {
    return Machine.now() + offset;
  }
};

const { default: Provider } = await import(pathToFileURL(join(folder, 'node_modules/oidc-provider/lib/index.js')));

let people = {};
let tampered = null;
let key;
let answer;

function begin(issuer) {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  key = { kid: randomUUID(), privateKey };
  const provider = new Provider(issuer, {
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid: key.kid, use: 'sig', alg: 'RS256' }] },
    clients: [{
      client_id: 'desk',
      client_secret: SECRET,
      redirect_uris: redirects,
      response_types: ['code'],
      grant_types: ['authorization_code'],
    }],
    cookies: { keys: [randomUUID()] },
    claims: { openid: ['sub'], profile: ['preferred_username', 'name', 'groups'], email: ['email'] },
    pkce: { required: () => true },
    findAccount: (_, id) => people[id] && {
      accountId: id,
      claims: () => ({ sub: id, ...people[id] }),
    },
    // Nobody is asked whether the desk may know: it is the company's own.
    async loadExistingGrant(ctx) {
      const grant = new ctx.oidc.provider.Grant({
        clientId: ctx.oidc.client.clientId,
        accountId: ctx.oidc.session.accountId,
      });
      grant.addOIDCScope('openid profile email');
      await grant.save();
      return grant;
    },
  });
  answer = provider.callback();
}

const encoded = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');

function resigned(token) {
  const [head, body] = token.split('.').slice(0, 2).map((part) => JSON.parse(Buffer.from(part, 'base64url')));
  const { sign, claims } = tampered;
  const alg = { none: 'none', secret: 'HS256' }[sign] ?? 'RS256';
  const text = `${encoded({ ...head, alg })}.${encoded({ ...body, ...claims })}`;
  const by = sign === 'key' ? generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey : key.privateKey;
  const signature = {
    none: () => '',
    HS256: () => createHmac('sha256', SECRET).update(text).digest('base64url'),
    RS256: () => createSign('RSA-SHA256').update(text).sign(by, 'base64url'),
  }[alg]();
  return `${text}.${signature}`;
}

// The framework hands its whole answer to `end`.
function tamper(response) {
  const end = response.end.bind(response);
  response.end = (body) => {
    const said = JSON.parse(body);
    if (said.id_token) said.id_token = resigned(said.id_token);
    const text = JSON.stringify(said);
    response.setHeader('content-length', Buffer.byteLength(text));
    return end(text);
  };
}

const orders = {
  '/test/people': (body) => { people = body; },
  '/test/clock': (body) => { offset = body - Machine.now(); },
  '/test/keys': (_, issuer) => begin(issuer),
  '/test/token': (body) => { tampered = body; },
};

const server = createServer(async (request, response) => {
  const order = orders[request.url];
  if (!order) {
    if (tampered && request.url === '/token') tamper(response);
    return answer(request, response);
  }
  let text = '';
  for await (const part of request) text += part;
  order(JSON.parse(text || 'null'), `http://127.0.0.1:${server.address().port}`);
  return response.writeHead(204).end();
});

server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  begin(issuer);
  console.log(issuer);
});

// It lives no longer than the test that started it.
process.stdin.resume();
process.stdin.on('end', () => process.exit());

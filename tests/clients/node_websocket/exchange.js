// Publishes and consumes with the package ws: `node exchange.js ws://HOST:PORT COUNT`. Prints how many messages came and were stored.
const WebSocket = require('ws');

const base = process.argv[2], count = Number(process.argv[3]);
const topic = 'persistent/public/default/node';
const consumer = new WebSocket(`${base}/ws/v2/consumer/${topic}/s`);
const received = [];
let stored = 0;

function finish() {
  if (received.length === count && stored === count) {
    const inOrder = received.every((text, number) => text === `Hello ${number}`);
    console.log(`${received.length} received ${inOrder ? 'in order' : 'out of order'}, ${stored} stored`);
    process.exit(0);
  }
}

function fail(reason) {
  console.error(reason);
  process.exit(1);
}

consumer.on('error', fail);
consumer.on('message', text => {
  const message = JSON.parse(text);
  received.push(Buffer.from(message.payload, 'base64').toString());
  consumer.send(JSON.stringify({messageId: message.messageId}));
  finish();
});
consumer.on('open', () => {
  const producer = new WebSocket(`${base}/ws/v2/producer/${topic}`);
  producer.on('error', fail);
  producer.on('message', text => {
    const answer = JSON.parse(text);
    if (answer.result !== 'ok' || answer.context !== String(stored)) fail(text);
    stored++;
    finish();
  });
  producer.on('open', () => {
    for (let number = 0; number < count; number++) {
      producer.send(JSON.stringify({payload: Buffer.from(`Hello ${number}`).toString('base64'), context: String(number)}));
    }
  });
});

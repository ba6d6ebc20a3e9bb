//! The Rust client (crate `pulsar`, protocol version 12, no feature flags), unmodified, against the server at PULSAR_TEST_URL.
//! It has no encryption, chunking, retry letters or batch-index acks. RESTART_PIPE and RESTART_DONE (server_process.py) let the
//! last test kill the server with -9.

use std::{collections::HashMap, collections::HashSet, env, fs, sync::Arc, time::Duration, time::SystemTime, time::UNIX_EPOCH};

use futures::{future::join_all, StreamExt};
use pulsar::{
    compression::*, consumer::DeadLetterPolicy, consumer::InitialPosition, consumer::Message, message::proto::{schema, MessageIdData, Schema}, producer,
    routing_policy::CustomRoutingPolicy, routing_policy::RoutingPolicy, Consumer, ConsumerOptions, Error, OperationRetryOptions, ProducerOptions, Pulsar, SubType, TokioExecutor,
};
use tokio::{io::AsyncReadExt, io::AsyncWriteExt, net::TcpStream, time::timeout};

const WAIT: Duration = Duration::from_secs(15);
const SHORT: Duration = Duration::from_millis(300);

type Client = Pulsar<TokioExecutor>;
type Texts = Consumer<String, TokioExecutor>;

async fn client() -> Client {
    Pulsar::builder(env::var("PULSAR_TEST_URL").unwrap(), TokioExecutor).build().await.unwrap()
}

fn topic(name: &str) -> String {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    format!("persistent://public/default/rust-{name}-{nanos}")
}

fn names(first: usize, count: usize) -> Vec<String> {
    (first..first + count).map(|i| format!("m{i}")).collect()
}

async fn subscribe(client: &Client, topic: &str, kind: SubType) -> Texts {
    let options = ConsumerOptions::default().with_initial_position(InitialPosition::Earliest);
    let builder = client.consumer().with_topic(topic).with_subscription("s").with_subscription_type(kind);
    builder.with_options(options).build().await.unwrap()
}

async fn publish(client: &Client, topic: &str, options: ProducerOptions, first: usize, count: usize) -> Vec<MessageIdData> {
    let mut producer = client.producer().with_topic(topic).with_options(options).build().await.unwrap();
    let mut pending = Vec::new();
    for name in names(first, count) {
        pending.push(producer.send_non_blocking(name).await.unwrap());
    }
    producer.send_batch().await.ok();
    let receipts = timeout(WAIT, join_all(pending)).await.unwrap();
    let ids = receipts.into_iter().map(|receipt| receipt.unwrap().message_id.unwrap()).collect();
    producer.close().await.unwrap();
    ids
}

fn unbatched() -> ProducerOptions {
    ProducerOptions { block_queue_if_full: true, ..Default::default() }
}

fn batched() -> ProducerOptions {
    ProducerOptions { batch_size: Some(10), block_queue_if_full: true, ..Default::default() }
}

async fn next(consumer: &mut Texts) -> Message<String> {
    timeout(WAIT, consumer.next()).await.expect("nothing came").unwrap().unwrap()
}

fn text(message: &Message<String>) -> String {
    message.deserialize().unwrap()
}

async fn receive(consumer: &mut Texts, count: usize) -> Vec<String> {
    let mut got = Vec::new();
    for _ in 0..count {
        let message = next(consumer).await;
        got.push(text(&message));
        consumer.ack(&message).await.unwrap();
    }
    got
}

async fn nothing_comes(consumer: &mut Texts) {
    if let Ok(Some(Ok(message))) = timeout(SHORT, consumer.next()).await {
        panic!("unexpected {}", text(&message));
    }
}

fn sorted(mut texts: Vec<String>) -> Vec<String> {
    texts.sort();
    texts
}

#[tokio::test]
async fn every_type_receives_in_order() {
    let client = client().await;
    for kind in [SubType::Exclusive, SubType::Shared, SubType::Failover, SubType::KeyShared] {
        for options in [unbatched(), batched()] {
            let topic = topic("types");
            let mut consumer = subscribe(&client, &topic, kind).await;
            publish(&client, &topic, options, 0, 100).await;
            assert_eq!(receive(&mut consumer, 100).await, names(0, 100));
            nothing_comes(&mut consumer).await;
        }
    }
}

#[tokio::test]
async fn whoever_is_there_gets_what_is_published_to_a_non_persistent_topic() {
    let client = client().await;
    for kind in [SubType::Exclusive, SubType::Shared, SubType::Failover, SubType::KeyShared] {
        let topic = format!("non-{}", topic("passing"));
        let mut consumer = subscribe(&client, &topic, kind).await;
        // this client asks for messages some time after it has subscribed
        loop {
            publish(&client, &topic, unbatched(), 1000, 1).await;
            if timeout(SHORT, consumer.next()).await.is_ok() {
                break;
            }
        }
        let ids = publish(&client, &topic, unbatched(), 0, 10).await;
        assert!(ids.iter().all(|id| (id.ledger_id, id.entry_id) == (0, 0)), "{ids:?}");
        let mut got = Vec::new();
        while got.len() < 10 {
            got.extend(Some(text(&next(&mut consumer).await)).filter(|text| text != "m1000"));
        }
        assert_eq!(got, names(0, 10));
    }
}

#[tokio::test]
async fn a_schema_that_does_not_fit_is_refused() {
    let client = client().await;
    let topic = topic("schema");
    let with = |kind: &str| {
        let fields = format!(r#"{{"type":"record","name":"T","fields":[{{"name":"name","type":"{kind}"}}]}}"#);
        let schema = Schema { r#type: schema::Type::Avro as i32, schema_data: fields.into_bytes(), ..Default::default() };
        client.producer().with_topic(&topic).with_options(ProducerOptions { schema: Some(schema), ..Default::default() }).build()
    };
    let mut first = with("string").await.unwrap();
    first.send_non_blocking("m0").await.unwrap().await.unwrap();
    with("string").await.unwrap();
    for wrong in ["long", "no type", "string\"}]"] {
        let refused = with(wrong).await.err().expect("it was taken").to_string();
        assert!(refused.contains("IncompatibleSchema"), "{refused}");
    }
    first.send_non_blocking("m1").await.unwrap().await.unwrap();
}

#[tokio::test]
async fn who_brings_no_schema_is_refused_where_the_namespace_says_so() {
    let client = client().await;
    let namespace = topic("enforced").replace("persistent://public/default/", "public/");
    ask("PUT", &format!("namespaces/{namespace}"), "{}").await;
    ask("POST", &format!("namespaces/{namespace}/schemaValidationEnforced"), "true").await;
    let topic = format!("persistent://{namespace}/t");
    client.producer().with_topic(&topic).build().await.unwrap().close().await.unwrap(); // it has none yet
    let schema = Schema { r#type: schema::Type::String as i32, ..Default::default() };
    let options = ProducerOptions { schema: Some(schema), ..Default::default() };
    let mut typed = client.producer().with_topic(&topic).with_options(options).build().await.unwrap();
    let refused = client.producer().with_topic(&topic).build().await.err().expect("it was taken").to_string();
    assert!(refused.contains("IncompatibleSchema"), "{refused}");
    typed.send_non_blocking("m0").await.unwrap().await.unwrap();
}

#[tokio::test]
async fn what_may_follow_is_as_the_topics_strategy_says() {
    let client = client().await;
    let of = |fields: &str| {
        let text = format!(r#"{{"type":"record","name":"R","fields":[{fields}]}}"#);
        Schema { r#type: schema::Type::Avro as i32, schema_data: text.into_bytes(), ..Default::default() }
    };
    let (a, b) = (r#"{"name":"a","type":"int"}"#, r#"{"name":"b","type":"int"}"#);
    let (one, more) = (of(a), of(&format!("{a},{b}")));
    for (strategy, added, taken_away) in [("ALWAYS_COMPATIBLE", true, true), ("BACKWARD", false, true), ("FORWARD", true, false), ("FULL", false, false)] {
        for (first, second, expected) in [(&one, &more, added), (&more, &one, taken_away)] {
            let topic = topic("strategy");
            publish(&client, &topic, unbatched(), 0, 0).await;
            let path = format!("{}/schemaCompatibilityStrategy", topic.replace("://", "/"));
            ask("PUT", &path, &format!("\"{strategy}\"")).await;
            let with = |schema: &Schema| {
                let options = ProducerOptions { schema: Some(schema.clone()), ..Default::default() };
                client.producer().with_topic(&topic).with_options(options).build()
            };
            with(first).await.unwrap();
            let found = with(second).await;
            assert_eq!(found.is_ok(), expected, "{strategy}");
            if let Err(refused) = found {
                assert!(refused.to_string().contains("IncompatibleSchema"), "{refused}");
            }
        }
    }
}

#[tokio::test]
async fn who_publishes_to_a_terminated_topic_is_told_and_what_is_there_is_read() {
    let client = client().await;
    let topic = topic("end");
    let mut consumer = subscribe(&client, &topic, SubType::Exclusive).await;
    publish(&client, &topic, unbatched(), 0, 1).await;
    ask("POST", &format!("{}/terminate", topic.replace("://", "/")), "").await;
    let refused = timeout(WAIT, client.producer().with_topic(&topic).build()).await.unwrap().err().expect("it was taken");
    assert!(refused.to_string().contains("TopicTerminated"), "{refused}");
    assert_eq!(receive(&mut consumer, 1).await, names(0, 1));
    nothing_comes(&mut consumer).await;
}

#[tokio::test]
async fn what_is_compacted_is_read_as_the_newest_of_each_key() {
    let client = client().await;
    let topic = topic("compacted");
    let mut producer = client.producer().with_topic(&topic).with_options(unbatched()).build().await.unwrap();
    for index in 0..40 {
        let key = Some(format!("k{}", index % 4));
        let payload = if index == 39 { Vec::new() } else { format!("m{index}").into_bytes() }; // an empty one takes its key away
        let message = producer::Message { payload, partition_key: key, ..Default::default() };
        producer.send_non_blocking(message).await.unwrap().await.unwrap();
    }
    let path = format!("{}/compaction", topic.replace("://", "/"));
    ask("PUT", &path, "").await;
    let compacted = async { while !ask("GET", &path, "").await.contains("SUCCESS") {} };
    timeout(Duration::from_secs(60), compacted).await.unwrap();
    let options = ConsumerOptions::default().read_compacted(true).with_initial_position(InitialPosition::Earliest);
    let builder = client.consumer().with_topic(&topic).with_subscription("s").with_subscription_type(SubType::Exclusive);
    let mut consumer: Texts = builder.with_options(options).build().await.unwrap();
    assert_eq!(receive(&mut consumer, 3).await, names(36, 3));
    nothing_comes(&mut consumer).await;
}

#[tokio::test]
async fn compressed_messages_come_back() {
    let client = client().await;
    let kinds = [
        Compression::Lz4(CompressionLz4::default()),
        Compression::Zlib(CompressionZlib::default()),
        Compression::Zstd(CompressionZstd::default()),
        Compression::Snappy(CompressionSnappy::default()),
    ];
    for kind in kinds {
        let topic = topic("compression");
        let mut consumer = subscribe(&client, &topic, SubType::Exclusive).await;
        publish(&client, &topic, ProducerOptions { compression: Some(kind), ..batched() }, 0, 30).await;
        assert_eq!(receive(&mut consumer, 30).await, names(0, 30));
    }
}

#[tokio::test]
async fn shared_consumers_share_and_a_nack_redelivers() {
    let client = client().await;
    let topic = topic("shared");
    let (mut a, mut b) = (subscribe(&client, &topic, SubType::Shared).await, subscribe(&client, &topic, SubType::Shared).await);
    publish(&client, &topic, unbatched(), 0, 100).await;
    let mut got = Vec::new();
    for consumer in [&mut a, &mut b] {
        let message = next(consumer).await;
        consumer.nack(&message).await.unwrap();
        while let Ok(Some(Ok(message))) = timeout(Duration::from_secs(2), consumer.next()).await {
            got.push(text(&message));
            consumer.ack(&message).await.unwrap();
        }
    }
    while let Ok(Some(Ok(message))) = timeout(SHORT, a.next()).await {
        got.push(text(&message));
        a.ack(&message).await.unwrap();
    }
    assert_eq!(sorted(got), sorted(names(0, 100)));
}

#[tokio::test]
async fn unacknowledged_messages_come_back_after_the_timeout() {
    let client = client().await;
    let topic = topic("unacked");
    let mut consumer: Texts = client
        .consumer()
        .with_topic(&topic)
        .with_subscription("s")
        .with_subscription_type(SubType::Shared)
        .with_unacked_message_resend_delay(Some(Duration::from_secs(1)))
        .build()
        .await
        .unwrap();
    publish(&client, &topic, unbatched(), 0, 3).await;
    for _ in 0..3 {
        next(&mut consumer).await;
    }
    assert_eq!(sorted(receive(&mut consumer, 3).await), names(0, 3));
}

#[tokio::test]
async fn delayed_messages_come_in_their_time_and_nothing_waits_behind_them() {
    let client = client().await;
    for kind in [SubType::Shared, SubType::KeyShared] {
        let topic = topic("delayed");
        let mut consumer = subscribe(&client, &topic, kind).await;
        let mut producer = client.producer().with_topic(&topic).build().await.unwrap();
        let due = SystemTime::now() + Duration::from_secs(8);
        for name in ["m0", "m1"] {
            let message = producer.create_message().with_content(name).with_key(name).deliver_at(due).unwrap();
            message.send_non_blocking().await.unwrap().await.unwrap();
        }
        producer.send_non_blocking("now").await.unwrap().await.unwrap();
        assert_eq!(receive(&mut consumer, 1).await, ["now"]);
        assert_eq!(sorted(receive(&mut consumer, 2).await), names(0, 2));
        assert!(SystemTime::now() >= due - Duration::from_secs(1), "early");
        nothing_comes(&mut consumer).await;
    }
}

#[tokio::test]
async fn refused_messages_reach_the_dead_letter_topic() {
    let client = client().await;
    let topic = topic("dead");
    let mut dead = subscribe(&client, &format!("{topic}-dlq"), SubType::Exclusive).await;
    let policy = DeadLetterPolicy { max_redeliver_count: 2, dead_letter_topic: format!("{topic}-dlq") };
    let builder = client.consumer().with_topic(&topic).with_subscription("s").with_subscription_type(SubType::Shared);
    let mut consumer: Texts = builder.with_dead_letter_policy(policy).build().await.unwrap();
    publish(&client, &topic, unbatched(), 0, 2).await;
    let refuse = async {
        while let Some(Ok(message)) = consumer.next().await {
            consumer.nack(&message).await.unwrap();
        }
    };
    tokio::select! {
        got = receive(&mut dead, 2) => assert_eq!(sorted(got), names(0, 2)),
        _ = refuse => panic!("the consumer ended"),
    }
}

#[tokio::test]
async fn a_cumulative_ack_covers_all_before() {
    let client = client().await;
    let topic = topic("cumulative");
    let mut consumer = subscribe(&client, &topic, SubType::Exclusive).await;
    publish(&client, &topic, unbatched(), 0, 10).await;
    for index in 0..10 {
        let message = next(&mut consumer).await;
        if index == 6 {
            consumer.cumulative_ack(&message).await.unwrap();
        }
    }
    assert_eq!(consumer.get_last_message_id().await.unwrap().len(), 1);
    assert_eq!(consumer.get_stats().await.unwrap()[0].r#type.as_deref(), Some("Exclusive"));
    consumer.close().await.unwrap();
    let mut consumer = subscribe(&client, &topic, SubType::Exclusive).await;
    assert_eq!(receive(&mut consumer, 3).await, names(7, 3));
}

/// Shared, because this client opens a second consumer after a seek while its first one reconnects by itself.
#[tokio::test]
async fn seek_goes_to_a_message_and_to_a_time() {
    let client = client().await;
    let topic = topic("seek");
    let mut consumer = subscribe(&client, &topic, SubType::Shared).await;
    let ids = publish(&client, &topic, unbatched(), 0, 10).await;
    assert_eq!(receive(&mut consumer, 10).await, names(0, 10));
    consumer.seek(None, Some(ids[4].clone()), None, client.clone()).await.unwrap();
    assert_eq!(sorted(receive(&mut consumer, 6).await), names(4, 6));
    consumer.seek(None, None, Some(1), client.clone()).await.unwrap();
    assert_eq!(sorted(receive(&mut consumer, 10).await), names(0, 10));
}

#[tokio::test]
async fn a_reader_starts_where_told() {
    let client = client().await;
    let topic = topic("reader");
    let ids = publish(&client, &topic, unbatched(), 0, 10).await;
    let options = ConsumerOptions::default().durable(false).starting_on_message(ids[3].clone());
    let mut reader = client.reader().with_topic(&topic).with_options(options).into_reader::<String>().await.unwrap();
    for name in names(3, 7) {
        let message = timeout(WAIT, reader.next()).await.unwrap().unwrap().unwrap();
        assert_eq!(text(&message), name);
    }
}

#[tokio::test]
async fn a_regex_finds_the_topics_of_its_pattern() {
    let client = client().await;
    let topic = topic("regex");
    publish(&client, &format!("{topic}-a"), unbatched(), 0, 2).await;
    publish(&client, &format!("{topic}-b"), unbatched(), 2, 2).await;
    publish(&client, &format!("{topic}x"), unbatched(), 4, 2).await;
    let pattern = regex::Regex::new(&format!("{topic}-.*")).unwrap();
    let options = ConsumerOptions::default().with_initial_position(InitialPosition::Earliest);
    let builder = client.consumer().with_topic_regex(pattern).with_lookup_namespace("public/default").with_subscription("s");
    let mut consumer: Texts = builder.with_options(options).build().await.unwrap();
    assert_eq!(sorted(receive(&mut consumer, 4).await), names(0, 4));
    nothing_comes(&mut consumer).await;
}

#[tokio::test]
async fn a_regex_follows_topics_that_come() {
    let client = client().await;
    let topic = topic("growing");
    for (first, name) in [(0, "a"), (2, "b")] { // of a single topic this client makes a consumer that looks for no others
        publish(&client, &format!("{topic}-{name}"), unbatched(), first, 2).await;
    }
    let pattern = regex::Regex::new(&format!("{topic}-.*")).unwrap();
    let options = ConsumerOptions::default().with_initial_position(InitialPosition::Earliest);
    let builder = client.consumer().with_topic_regex(pattern).with_lookup_namespace("public/default").with_subscription("s");
    let mut consumer: Texts = builder.with_options(options).with_topic_refresh(Duration::from_millis(200)).build().await.unwrap();
    assert_eq!(sorted(receive(&mut consumer, 4).await), names(0, 4));
    publish(&client, &format!("{topic}-c"), unbatched(), 4, 2).await;
    assert_eq!(sorted(receive(&mut consumer, 2).await), names(4, 2));
}

struct ByKey;

impl CustomRoutingPolicy for ByKey {
    fn route(&self, message: &producer::Message, partitions: usize) -> usize {
        RoutingPolicy::compute_partition_index_for_key(message.partition_key.as_deref().unwrap(), partitions)
    }
}

#[tokio::test]
async fn keys_of_a_partitioned_topic_stay_in_their_partition() {
    let client = client().await;
    let topic = topic("partitioned");
    create_partitioned(&topic, 3).await;
    let mut consumer = subscribe(&client, &topic, SubType::Exclusive).await;
    let options = ProducerOptions { routing_policy: Some(RoutingPolicy::Custom(Arc::new(ByKey))), ..Default::default() };
    let mut producer = client.producer().with_topic(&topic).with_options(options).build().await.unwrap();
    for index in 0..40 {
        let key = Some(format!("k{}", index % 8));
        let message = producer::Message { payload: b"x".to_vec(), partition_key: key, ..Default::default() };
        producer.send_non_blocking(message).await.unwrap().await.unwrap();
    }
    let mut partitions: HashMap<String, String> = HashMap::new();
    for _ in 0..40 {
        let message = next(&mut consumer).await;
        let key = message.key().unwrap();
        assert_eq!(partitions.entry(key).or_insert(message.topic.clone()), &message.topic);
        consumer.ack(&message).await.unwrap();
    }
}

async fn create_partitioned(topic: &str, partitions: u32) {
    ask("PUT", &format!("{}/partitions", topic.replace("://", "/")), &partitions.to_string()).await;
}

/// Of the admin REST; what is asked is done, or it fails.
async fn ask(method: &str, path: &str, body: &str) -> String {
    let web = env::var("PULSAR_TEST_WEB_URL").unwrap();
    let address = web.strip_prefix("http://").unwrap();
    let request = format!(
        "{method} /admin/v2/{path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 20"), "{answer}");
    answer
}

#[tokio::test]
async fn an_exclusive_producer_keeps_others_out() {
    let client = client().await;
    let topic = topic("exclusive");
    let exclusive = ProducerOptions { access_mode: Some(1), ..Default::default() };
    let mut first = client.producer().with_topic(&topic).with_options(exclusive.clone()).build().await.unwrap();
    let other = self::client().await;
    let refused = timeout(WAIT, other.producer().with_topic(&topic).with_options(exclusive).build()).await;
    assert!(matches!(refused, Ok(Err(Error::Producer(_))) | Ok(Err(Error::Connection(_)))), "got in beside an exclusive producer");
    first.send_non_blocking("still mine").await.unwrap().await.unwrap();
}

#[tokio::test]
async fn zz_kill_minus_nine_loses_nothing_acknowledged() {
    let Ok(pipe) = env::var("RESTART_PIPE") else { return };
    let client = client().await;
    let topic = topic("kill");
    subscribe(&client, &topic, SubType::Shared).await.close().await.unwrap(); // or nothing has to be kept
    let mut missing = HashSet::new();
    for round in 0..3 {
        missing.extend(publish_and_note(&client, &topic, round).await);
        if round < 2 {
            restart(&pipe).await;
        }
    }
    assert_eq!(missing.len(), 600);
    let mut consumer = subscribe(&client, &topic, SubType::Shared).await;
    while !missing.is_empty() {
        let message = next(&mut consumer).await;
        missing.remove(&text(&message));
        consumer.ack(&message).await.unwrap();
    }
}

/// This client numbers messages itself, from 0 for each producer, and sends again what was not answered when the server was killed.
#[tokio::test]
async fn what_is_sent_again_over_a_kill_is_stored_once() {
    let Ok(pipe) = env::var("RESTART_PIPE") else { return };
    let patient = OperationRetryOptions { operation_timeout: 8 * WAIT, ..Default::default() }; // a restart may take its time
    let builder = Pulsar::builder(env::var("PULSAR_TEST_URL").unwrap(), TokioExecutor).with_operation_retry_options(patient);
    let client: Client = builder.build().await.unwrap();
    let topic = topic("dedup");
    subscribe(&client, &topic, SubType::Exclusive).await.close().await.unwrap();
    ask("POST", &format!("{}/deduplicationEnabled", topic.replace("://", "/")), "true").await;
    let mut producer = client.producer().with_topic(&topic).with_name("p").with_options(unbatched()).build().await.unwrap();
    let mut pending = Vec::new();
    for name in names(0, 300) {
        pending.push(producer.send_non_blocking(name).await.unwrap());
    }
    restart(&pipe).await;
    for name in names(300, 300) {
        pending.push(producer.send_non_blocking(name).await.unwrap());
    }
    for receipt in timeout(8 * WAIT, join_all(pending)).await.unwrap() {
        receipt.unwrap();
    }
    let mut consumer = subscribe(&client, &topic, SubType::Exclusive).await;
    assert_eq!(receive(&mut consumer, 600).await, names(0, 600));
    nothing_comes(&mut consumer).await;
}

async fn publish_and_note(client: &Client, topic: &str, round: usize) -> Vec<String> {
    publish(client, topic, unbatched(), round * 200, 200).await;
    names(round * 200, 200)
}

async fn restart(pipe: &str) {
    let done = env::var("RESTART_DONE").unwrap();
    let size = |path: &str| fs::metadata(path).map(|file| file.len()).unwrap_or(0);
    let before = size(&done);
    fs::write(pipe, "restart\n").unwrap();
    let deadline = SystemTime::now() + Duration::from_secs(60);
    while size(&done) == before {
        assert!(SystemTime::now() < deadline, "the server did not come back");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

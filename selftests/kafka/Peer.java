// SPDX-License-Identifier: MIT
import java.io.File;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.TreeSet;
import java.util.concurrent.Future;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.log.EpochEntry;

/*
 * What the tests of this folder do with Kafka's own client, against either broker:
 *
 *   Peer create BROKER		make the topics of fill
 *   Peer fill BROKER		records of every kind that a broker of Kafka's stores
 *   Peer more BROKER SEED	some more to every topic, without producer ids
 *   Peer read BROKER FILE	every record and answers about times, as text
 *   Peer truth BROKER FILE	the same, but answers about the times of the compacted
 *				topic as the records have them: Kafka stops at a batch
 *				of which its cleaner has left but a header
 *   Peer epochs DIR FILE	the leader epochs of the partitions below DIR, as Kafka's
 *				broker reads their files
 */
public class Peer {
	static final String[] CODECS = { "none", "gzip", "snappy", "lz4", "zstd" };
	static final String[] TOPICS = { "plain", "codecs", "stamped", "txn", "deleted", "compact",
		"allocated" };
	static final long BEGIN = 1600000000000L;

	static Properties common(String broker) {
		Properties p = new Properties();

		p.put("bootstrap.servers", broker);
		p.put("default.api.timeout.ms", "20000");
		p.put("request.timeout.ms", "15000");
		return p;
	}

	static KafkaProducer<byte[], byte[]> producer(String broker, String codec, boolean ids,
						      String txn) {
		Properties p = common(broker);

		p.put("key.serializer", ByteArraySerializer.class.getName());
		p.put("value.serializer", ByteArraySerializer.class.getName());
		p.put("compression.type", codec);
		p.put("linger.ms", "20");
		p.put("batch.size", "3000");
		p.put("enable.idempotence", ids ? "true" : "false");
		p.put("acks", ids ? "all" : "1");
		if (txn != null)
			p.put("transactional.id", txn);
		return new KafkaProducer<>(p);
	}

	static byte[] bytes(Random r, int n) {
		byte[] b = new byte[n];

		/* some of it repeats, so that codecs have something to do */
		for (int i = 0; i < n; i++)
			b[i] = (byte) ('a' + (i / 7 + r.nextInt(3)) % 26);
		return b;
	}

	static ProducerRecord<byte[], byte[]> record(Random r, String topic, Integer partition,
						     long time, int i) {
		byte[] key = r.nextInt(4) == 0 ? null : ("key" + r.nextInt(50)).getBytes(
				StandardCharsets.UTF_8);
		byte[] value = r.nextInt(20) == 0 && key != null ? null : bytes(r, r.nextInt(400));
		ProducerRecord<byte[], byte[]> rec;

		if (topic.equals("compact") && key == null)
			key = "key".getBytes(StandardCharsets.UTF_8);
		if (topic.equals("compact"))
			value = bytes(r, 100);
		rec = new ProducerRecord<>(topic, partition, time, key, value);
		for (int h = r.nextInt(6) - 3; h > 0; h--)
			rec.headers().add("header" + h, h == 2 ? null : bytes(r, 5));
		return rec;
	}

	/* Out of order, and some equal; not in topics whose records will be deleted. */
	static long time(Random r, String topic, int i) {
		return topic.equals("deleted") ? BEGIN + i : BEGIN + i * 3 + r.nextInt(400);
	}

	static void send(String broker, String topic, int partitions, int count, boolean ids,
			 long seed) throws Exception {
		Random r = new Random(seed);

		for (int from = 0, c = 0; from < count; from += 150, c++) {
			String codec = topic.equals("codecs") || seed > 100 ? CODECS[c % 5] : "none";
			List<Future<?>> sent = new ArrayList<>();

			try (KafkaProducer<byte[], byte[]> p = producer(broker, codec, ids, null)) {
				for (int i = from; i < Math.min(count, from + 150); i++)
					sent.add(p.send(record(r, topic, i % partitions,
							       time(r, topic, i), i)));
				p.flush();
				for (Future<?> f : sent)
					f.get();
			}
		}
	}

	static void transactions(String broker) throws Exception {
		Random r = new Random(5);

		try (KafkaProducer<byte[], byte[]> p = producer(broker, "lz4", true, "t1")) {
			p.initTransactions();
			for (int t = 0; t < 12; t++) {
				p.beginTransaction();
				for (int i = 0; i < 20; i++)
					p.send(record(r, "txn", 0, time(r, "txn", 20 * t + i), i));
				p.flush();
				if (t % 3 == 2)
					p.abortTransaction();
				else
					p.commitTransaction();
			}
		}
	}

	static void create(String broker) throws Exception {
		try (Admin admin = Admin.create(common(broker))) {
			List<NewTopic> topics = new ArrayList<>();

			for (String t : TOPICS) {
				Map<String, String> c = new java.util.HashMap<>(Map.of(
					"internal.segment.bytes", "20000",
					"index.interval.bytes", "900", "retention.ms", "-1"));

				if (t.equals("stamped"))
					c.put("message.timestamp.type", "LogAppendTime");
				if (t.equals("compact"))
					c.putAll(Map.of("cleanup.policy", "compact",
							"min.cleanable.dirty.ratio", "0.01"));
				if (t.equals("allocated"))
					c.put("preallocate", "true");
				topics.add(new NewTopic(t, t.equals("plain") ? 2 : 1, (short) 1)
						.configs(c));
			}
			admin.createTopics(topics).all().get();
		}
	}

	static void fill(String broker) throws Exception {
		create(broker);
		send(broker, "plain", 2, 600, true, 1);
		send(broker, "codecs", 1, 1500, true, 2);
		send(broker, "stamped", 1, 450, false, 3);
		send(broker, "deleted", 1, 450, true, 4);
		send(broker, "compact", 1, 900, true, 6);
		send(broker, "allocated", 1, 300, true, 7);
		transactions(broker);
		try (Admin admin = Admin.create(common(broker))) {
			TopicPartition tp = new TopicPartition("deleted", 0);

			admin.deleteRecords(Map.of(tp, RecordsToDelete.beforeOffset(201))).all().get();
		}
		/* a group's offsets, in a topic of Kafka's own */
		try (KafkaConsumer<byte[], byte[]> c = consumer(broker, "a-group")) {
			c.subscribe(List.of("plain"));
			for (int i = 0; i < 100 && c.assignment().isEmpty(); i++)
				c.poll(Duration.ofMillis(100));
			c.poll(Duration.ofMillis(500));
			c.commitSync();
		}
		for (int i = 0; i < 150; i++) {
			if (lines(broker, "compact", true).size() < 800)
				return;
			Thread.sleep(100);
		}
		System.out.println("# nothing was compacted");
	}

	static KafkaConsumer<byte[], byte[]> consumer(String broker, String group) {
		Properties p = common(broker);

		p.put("key.deserializer", ByteArrayDeserializer.class.getName());
		p.put("value.deserializer", ByteArrayDeserializer.class.getName());
		p.put("auto.offset.reset", "earliest");
		p.put("enable.auto.commit", "false");
		p.put("check.crcs", "true");
		if (group != null)
			p.put("group.id", group);
		return new KafkaConsumer<>(p);
	}

	static String hash(byte[] b) throws Exception {
		return b == null ? "null" : b.length + ":" + HexFormat.of().formatHex(
			MessageDigest.getInstance("MD5").digest(b), 0, 6);
	}

	/* Every record of a topic, as Kafka's consumer gives it, and look-ups by time. */
	static List<String> lines(String broker, String topic, boolean truth) throws Exception {
		List<String> out = new ArrayList<>();

		try (KafkaConsumer<byte[], byte[]> c = consumer(broker, null)) {
			List<TopicPartition> parts = new ArrayList<>();

			for (PartitionInfo i : c.partitionsFor(topic))
				parts.add(new TopicPartition(topic, i.partition()));
			parts.sort((a, b) -> a.partition() - b.partition());
			for (TopicPartition tp : parts)
				one(c, tp, truth && topic.equals("compact"), out);
		}
		return out;
	}

	static void one(KafkaConsumer<byte[], byte[]> c, TopicPartition tp, boolean truth,
			List<String> out) throws Exception {
		List<long[]> seen = new ArrayList<>();
		long begin = c.beginningOffsets(List.of(tp)).get(tp);
		long end = c.endOffsets(List.of(tp)).get(tp);
		TreeSet<Long> times = new TreeSet<>();

		out.add(tp + " from " + begin + " to " + end);
		c.assign(List.of(tp));
		c.seek(tp, begin);
		while (c.position(tp) < end) {
			for (ConsumerRecord<byte[], byte[]> r : c.poll(Duration.ofSeconds(10))) {
				StringBuilder s = new StringBuilder();

				s.append(tp).append(' ').append(r.offset()).append(' ')
				 .append(r.timestamp()).append(' ').append(r.timestampType())
				 .append(' ').append(hash(r.key())).append(' ')
				 .append(hash(r.value()));
				for (Header h : r.headers())
					s.append(' ').append(h.key()).append('=')
					 .append(hash(h.value()));
				out.add(s.toString());
				seen.add(new long[] { r.offset(), r.timestamp() });
				if (r.offset() % 7 == 0) {
					times.add(r.timestamp());
					times.add(r.timestamp() + 1);
				}
			}
		}
		for (long t : times) {
			String answer = "none";

			if (truth) {
				for (long[] r : seen)
					if (r[1] >= t) {
						answer = r[0] + " " + r[1];
						break;
					}
			} else {
				OffsetAndTimestamp at = c.offsetsForTimes(Map.of(tp, t)).get(tp);

				if (at != null)
					answer = at.offset() + " " + at.timestamp();
			}
			out.add(tp + " at " + t + ": " + answer);
		}
	}

	static void read(String broker, String file, boolean truth) throws Exception {
		try (PrintWriter w = new PrintWriter(file); Admin admin = Admin.create(common(broker))) {
			for (String t : TOPICS) {
				for (String line : lines(broker, t, truth))
					w.println(line);
				for (int i = 0; i < (t.equals("plain") ? 2 : 1); i++) {
					TopicPartition tp = new TopicPartition(t, i);
					var at = admin.listOffsets(Map.of(tp, OffsetSpec.maxTimestamp()))
							.partitionResult(tp).get();

					w.println(tp + " latest " + at.offset() + " " + at.timestamp());
				}
			}
		}
	}

	static void epochs(String dir, String file) throws Exception {
		File[] partitions = new File(dir).listFiles((d, name) -> name.matches("[a-z].*-[0-9]+"));

		Arrays.sort(partitions);
		try (PrintWriter w = new PrintWriter(file)) {
			for (File p : partitions) {
				File f = LeaderEpochCheckpointFile.newFile(p);

				for (EpochEntry e : new LeaderEpochCheckpointFile(f, null).read())
					w.println(p.getName() + " " + e.epoch() + " " + e.startOffset());
			}
		}
	}

	static void run(List<String> a) throws Exception {
		switch (a.get(0)) {
		case "create":
			create(a.get(1));
			break;
		case "fill":
			fill(a.get(1));
			break;
		case "more":
			for (String t : TOPICS)
				send(a.get(1), t, t.equals("plain") ? 2 : 1, 300, false,
				     100 + Long.parseLong(a.get(2)));
			break;
		case "epochs":
			epochs(a.get(1), a.get(2));
			break;
		case "read":
		case "truth":
			read(a.get(1), a.get(2), a.get(0).equals("truth"));
			break;
		default:
			throw new IllegalArgumentException(a.get(0));
		}
	}

	/* Several commands with "then" between them: a virtual machine takes its time to start. */
	public static void main(String[] args) throws Exception {
		List<String> all = List.of(args);

		for (int from = 0, i = 0; i <= args.length; i++) {
			if (i < args.length && !args[i].equals("then"))
				continue;
			run(all.subList(from, i));
			from = i + 1;
		}
	}
}

# SPDX-License-Identifier: Apache-2.0
"""The Kubernetes examples: what they say fits together, muster understands it, and the published
schemas accept it. Nothing here runs in a cluster.
"""

import json
import os
import shutil
import subprocess
import unittest

import harness
from harness import MusterTest

try:
    import yaml
except ImportError:
    yaml = None

EXAMPLES = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
    "examples",
    "kubernetes",
)
# Validators and types made from the schemas that Kubernetes publishes. The former let unknown
# fields pass, the latter do not.
PACKAGES = ("kubernetes-models@5.1.0", "typescript@5.6.3")
KINDS = {
    "Service": "v1/Service",
    "Job": "batch/v1/Job",
    "PodTemplateSpec": "v1/PodTemplateSpec",
}
# Of the training operator's PyTorchJob (kubeflow.org/v1), whose schema is in no package: the fields
# of its Go types PyTorchJobSpec, ElasticPolicy, RDZVConf and ReplicaSpec.
PYTORCHJOB_FIELDS = {"runPolicy", "elasticPolicy", "pytorchReplicaSpecs", "nprocPerNode"}
ELASTIC_FIELDS = {"minReplicas", "maxReplicas", "rdzvBackend", "rdzvPort", "rdzvHost", "rdzvId"} | {
    "rdzvConf",
    "standalone",
    "nProcPerNode",
    "maxRestarts",
    "metrics",
}
REPLICA_FIELDS = {"replicas", "template", "restartPolicy"}


def load(name):
    with open(os.path.join(EXAMPLES, name)) as file:
        return list(yaml.safe_load_all(file))


def option(command, name):
    for word in command:
        if word.startswith(f"--{name}="):
            return word.partition("=")[2]
    return None


class Kubernetes(MusterTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if yaml is None:
            raise unittest.SkipTest("no python3-yaml on this machine")

    def plan(self, command, env):
        self.script("", "train.py")
        run = self.start("--dry-run", *command[1:], env=env).wait()
        self.assert_code(run, 0)
        return run.out

    def test_the_indexed_jobs_parts_fit_together(self):
        service, job = load("indexed-job.yaml")
        pod = job["spec"]["template"]["spec"]
        name = job["metadata"]["name"]
        self.assertEqual(service["spec"]["selector"], {"job-name": name})
        self.assertEqual(service["spec"]["clusterIP"], "None")
        self.assertEqual(pod["subdomain"], service["metadata"]["name"])
        command = pod["containers"][0]["command"]
        host, port = option(command, "rdzv-endpoint").split(":")
        self.assertEqual(host, f"{name}-0.{service['metadata']['name']}")
        self.assertEqual(int(port), pod["containers"][0]["ports"][0]["containerPort"])
        self.assertEqual(int(option(command, "nnodes")), job["spec"]["completions"])
        self.assertEqual(job["spec"]["completions"], job["spec"]["parallelism"])
        grace = int(option(command, "shutdown-timeout"))
        self.assertGreater(pod["terminationGracePeriodSeconds"], grace)

    def test_a_pod_of_the_indexed_job_knows_its_place(self):
        command = load("indexed-job.yaml")[1]["spec"]["template"]["spec"]["containers"][0][
            "command"
        ]
        env = {
            "JOB_COMPLETION_INDEX": "3",
            "PET_RDZV_ID": "0a1b",
            "MUSTER_TOKEN": "0123456789abcdef",
        }
        shown = self.plan(command, env)
        self.assertIn(
            "4 nodes meet at train-0.train:29400 (c10d), this is node 3, with a tok", shown
        )
        self.assertIn("run 0a1b on ", shown)
        self.assertNotIn("0123456789abcdef", shown)

    def test_a_pod_of_the_pytorchjob_knows_its_job(self):
        (job,) = load("pytorchjob.yaml")
        policy = job["spec"]["elasticPolicy"]
        worker = job["spec"]["pytorchReplicaSpecs"]["Worker"]
        pod = worker["template"]["spec"]
        self.assertEqual(pod["containers"][0]["name"], "pytorch")  # the operator looks for it
        command = pod["containers"][0]["command"]
        grace = int(option(command, "shutdown-timeout"))
        self.assertGreater(pod["terminationGracePeriodSeconds"], grace)
        # As the operator's elastic.go derives them.
        env = {
            "PET_RDZV_ENDPOINT": "train-worker-0:23456",
            "PET_RDZV_BACKEND": policy["rdzvBackend"],
            "PET_RDZV_ID": policy["rdzvId"],
            "PET_RDZV_CONF": ",".join(f"{one['key']}={one['value']}" for one in policy["rdzvConf"]),
            "PET_NNODES": f"{policy['minReplicas']}:{policy['maxReplicas']}",
            "PET_MAX_RESTARTS": str(policy["maxRestarts"]),
            "PET_NPROC_PER_NODE": "2",
        }
        shown = self.plan(command, env)
        self.assertIn("2 to 4 nodes meet at train-worker-0:23456 (c10d)\n", shown)
        self.assertIn("TORCHELASTIC_MAX_RESTARTS=3", shown)

    def test_the_pytorchjob_has_no_field_that_its_types_lack(self):
        (job,) = load("pytorchjob.yaml")
        self.assertEqual(set(job), {"apiVersion", "kind", "metadata", "spec"})
        self.assertEqual(job["apiVersion"], "kubeflow.org/v1")
        self.assertLessEqual(set(job["spec"]), PYTORCHJOB_FIELDS)
        self.assertLessEqual(set(job["spec"]["elasticPolicy"]), ELASTIC_FIELDS)
        for replica in job["spec"]["pytorchReplicaSpecs"].values():
            self.assertLessEqual(set(replica), REPLICA_FIELDS)

    # -- the published schemas --------------------------------------------------------------------

    def schemas(self):
        """A folder with the packages, fetched once."""
        if shutil.which("npm") is None:
            self.skipTest("no npm on this machine")
        folder = os.path.join(harness.CACHE, "kubernetes-schemas")
        os.makedirs(folder, exist_ok=True)
        wanted = os.path.join(folder, "packages")
        if harness.read(wanted).decode() != " ".join(PACKAGES):
            with open(os.path.join(folder, "package.json"), "w") as file:
                json.dump({"private": True, "type": "module"}, file)
            words = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", *PACKAGES]
            done = subprocess.run(
                words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            if done.returncode != 0:
                self.skipTest("npm cannot fetch the schemas: " + done.stdout.decode()[-300:])
            with open(wanted, "w") as file:
                file.write(" ".join(PACKAGES))
        return folder

    def objects(self, break_it=None):
        """(kind, object) of all examples; a PyTorchJob counts by the templates of its pods."""
        found = []
        for name in sorted(os.listdir(EXAMPLES)):
            for document in load(name):
                if document["kind"] in KINDS:
                    found.append((document["kind"], document))
                else:
                    for replica in document["spec"]["pytorchReplicaSpecs"].values():
                        found.append(("PodTemplateSpec", replica["template"]))
        for _, one in found:
            if break_it:
                break_it(one)
        return found

    def check(self, objects):
        """What the types and the validators say, "" if nothing."""
        folder = self.schemas()
        lines = [
            f'import {{{k}, type I{k}}} from "kubernetes-models/{p}";' for k, p in KINDS.items()
        ]
        for number, (kind, one) in enumerate(objects):
            lines.append(f"const o{number}: I{kind} = {json.dumps(one)};")
            lines.append(f"new {kind}(o{number}).validate();")
        # In the packages' folder, where modules are looked for.
        base = os.path.join(folder, f"check-{os.getpid()}")
        for ending in (".mts", ".mjs"):
            self.addCleanup(lambda path=base + ending: os.path.exists(path) and os.remove(path))
        with open(base + ".mts", "w") as file:
            file.write("\n".join(lines) + "\n")
        flags = (
            "--strict --skipLibCheck --target es2022 --module nodenext --moduleResolution nodenext"
        )
        said = ""
        for words in (
            ["node_modules/.bin/tsc", *flags.split(), base + ".mts"],
            ["node", base + ".mjs"],
        ):
            done = subprocess.run(
                words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            if done.returncode != 0:
                said += done.stdout.decode()
        return said

    def test_the_published_schemas_accept_them(self):
        objects = self.objects()
        self.assertEqual([kind for kind, _ in objects], ["Service", "Job", "PodTemplateSpec"])
        self.assertEqual(self.check(objects), "")

    def test_the_schemas_would_notice(self):
        def misspell(one):
            if one.get("kind") == "Job":
                one["spec"]["completion"] = one["spec"].pop("completions")

        self.assertIn(
            "'completion' does not exist", self.check(self.objects(misspell)).replace('"', "")
        )

        def mistype(one):
            one["spec"]["backoffLimit" if one.get("kind") == "Job" else "clusterIP"] = "four"

        self.assertIn("backoffLimit", self.check(self.objects(mistype)))


if __name__ == "__main__":
    harness.main()

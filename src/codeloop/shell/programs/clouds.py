"""Rows of the command lines of clouds, and of programs that deploy and administer."""

from codeloop.shell.program_row import ProgramRow, list_by_name

_K_REMOTE = """
annotate,apply,attach,autoscale,cordon,cp,create,debug,delete ! --dry-run
drain,edit,exec,expose,label,patch,replace,run,scale,set ! --dry-run
taint,uncordon,evict,certificate,adm,new-app,new-project,start-build,process ! --dry-run
rsh
rollout restart,undo,pause,resume,latest ! --dry-run
"""
_TERRAFORM_REMOTE = """
apply,destroy,import,refresh,taint,untaint,force-unlock,apply-all,destroy-all
state mv,push,replace-provider,rm ! -dry-run
workspace delete,new
run-all,run,stack ** apply,destroy
"""

_ROWS = {
    "amplify chalice": ProgramRow(remote="delete,deploy,publish,push"),
    "ansible": ProgramRow(remote="! -C --check --list-hosts"),
    "ansible-playbook": ProgramRow(
        remote="! -C --check --syntax-check --list-hosts --list-tasks --list-tags"
    ),
    "ansible-pull": ProgramRow(remote="! --check --list-hosts"),
    "argocd": ProgramRow(
        remote="** create,delete,delete-resource,rollback,set,sync,patch,patch-resource,terminate-op,unset ! --dry-run"
    ),
    "aws": ProgramRow(
        options="""
--debug --endpoint-url=- --no-cli-pager --no-verify-ssl --output=- --profile=- --query=-
--region=-
""",
        groups="ec2 iam s3 s3api",
        remote="""
s3 mb,mv,rb,rm ! --dryrun
s3 cp,sync > s3://* ! --dryrun
* accept-*,add-*,apply-*,assign-*,associate-*,attach-* ! --dry-run
* authorize-*,cancel-*,complete-*,copy-*,create-*,delete-* ! --dry-run
* deploy,deploy-*,deregister-*,detach-*,disable-* ! --dry-run
* disassociate-*,enable-*,execute-*,import-*,invoke,invoke-* ! --dry-run
* modify-*,publish,publish-*,purge-*,put-*,reboot-* ! --dry-run
* register-*,release-*,remove-*,replace-*,request-*,reset-* ! --dry-run
* restore-*,revoke-*,run-*,send-*,set-*,start-*,stop-*,submit-*,tag-*,terminate-*,transact-*,untag-* ! --dry-run
* update-*,upload-*,send,push,update,execute-command,write-* ! --dry-run
""",
    ),
    "az": ProgramRow(
        groups="account group vm",
        remote="""
** add,apply,approve,assign,attach,cancel,clear,create,deallocate,delete~,deploy,detach,disable,enable,execute,grant
** import,invoke,merge,move,post,publish,purge,push,reboot,regenerate,reimage,remove,renew,reset,resize,restart
** restore,revoke,run,run-command,scale,set~,start,stop,swap,sync,terminate,undelete,unlock,up,update,upgrade,upload~
not account,config,cloud,extension,login,logout
""",
    ),
    "bq": ProgramRow(remote="cp,insert,load,mk,rm,update,query"),
    "cdk cdktf": ProgramRow(remote="bootstrap,deploy,destroy,import,rollback"),
    "cf convox copilot eb ecs-cli": ProgramRow(
        remote="** create,delete,deploy,destroy,init,push,restart,restage,scale,terminate,up"
    ),
    "civo doctl exo hcloud ibmcloud linode-cli oci openstack scw vultr-cli": ProgramRow(
        remote="""
** add~,apply,assign
** attach~,create~,delete~,deploy
** destroy,detach~,disable~
** enable~,put,reboot,rebuild
** remove~,reset~,resize,restart,rm,rotate~,set~
** shutdown,start,stop,terminate,unset,update~
"""
    ),
    "colmena kustomize": ProgramRow(remote="apply"),
    "consul": ProgramRow(remote="kv put,delete"),
    "convex": ProgramRow(remote="deploy ! --dry-run"),
    "denodeploy deployctl firebase-tools": ProgramRow(remote="deploy"),
    "eas": ProgramRow(remote="build,submit,update ! --local"),
    "eksctl k0sctl kops": ProgramRow(remote="apply,create,delete,replace,scale,upgrade,update"),
    "expo": ProgramRow(remote="publish"),
    "firebase": ProgramRow(remote="deploy,*:delete,*:disable,*:set,*:create,*:import"),
    "flux": ProgramRow(
        remote="bootstrap,create,delete,install,reconcile,resume,suspend,uninstall,push ! --export"
    ),
    "fly flyctl": ProgramRow(
        remote="""
deploy,destroy,launch,scale,restart,resume,suspend,ssh,import
apps,machine,machines,volumes,volume,secrets,ips,certs,postgres,redis add,allocate*,clone,create,delete,deploy
apps,machine,machines,volumes,volume,secrets,ips,certs,postgres,redis destroy,import,kill
apps,machine,machines,volumes,volume,secrets,ips release,remove,restart,run,set,start,stop,unset,update
"""
    ),
    "gcloud": ProgramRow(
        groups="compute container",
        remote="""
** add~,apply,call,cancel,create~,delete~,deploy,detach~,disable~,drain,enable~,execute,export,import,insert
** migrate,move,patch,promote~,publish,purge,push,remove~,replace~,reset~,resize,restart,restore,resume,rollback
** rollout,rotate,scp,set-*,ssh,start~,stop~,submit,suspend,switchover,undelete,update~,upgrade,upload,write
not config,auth,components,init,topic,info
""",
    ),
    "gh-pages surge": ProgramRow(remote="**"),
    "gsutil": ProgramRow(
        remote="""
rm,mb,rb,mv,acl,iam,setmeta,defacl,lifecycle
cp,rsync > gs://*
""",
        has_short_help=False,
    ),
    "helm": ProgramRow(
        options="-n=- --debug --kube-context=- --kubeconfig=- --namespace=-",
        groups="repo",
        remote="""
push,cm-push
delete,install,rollback,uninstall,upgrade ! --dry-run
""",
        checks="lint: lint",
    ),
    "helmfile": ProgramRow(remote="apply,destroy,sync,delete"),
    "heroku": ProgramRow(
        groups="",
        remote="""
*:add,*:attach,*:clear,*:create,*:destroy,*:detach,*:disable,*:enable,*:exec,*:import,*:off,*:on,*:promote
*:push,*:release,*:remove,*:rename,*:reset,*:resize,*:restart,*:restore,*:rollback,*:run,*:scale,*:set
*:stop,*:unset
create,destroy,restart,run,scale,releases:rollback
""",
    ),
    "istioctl": ProgramRow(remote="install,uninstall,upgrade ! --dry-run"),
    "k kubecolor oc": ProgramRow(remote=_K_REMOTE),
    "kamal": ProgramRow(
        remote="deploy,redeploy,remove,rollback,setup,app,accessory,env", has_short_help=False
    ),
    "knife": ProgramRow(remote="** bootstrap,create,delete,edit,from,ssh,upload"),
    "kubectl": ProgramRow(
        options="""
-n=- -s=- --as=- --cluster=- --context=- --kubeconfig=- --namespace=- --server=- --token=-
--user=-
""",
        runs_after="exec; x",
        groups="config rollout",
        remote=_K_REMOTE,
    ),
    "mc": ProgramRow(remote="cp,mirror,mv,rb,rm,mb"),
    "modal": ProgramRow(remote="deploy,run"),
    "netlify ntl": ProgramRow(
        remote="deploy,env:set,env:unset,env:import,sites:create,sites:delete,api,unlink"
    ),
    "nix": ProgramRow(
        runs_after="develop; run; shell",
        groups="",
        checks="all: flake check; build: build",
        remote="copy + --to",
    ),
    "nixops": ProgramRow(remote="deploy,destroy"),
    "nixos-rebuild": ProgramRow(remote="+ --target-host"),
    "nomad": ProgramRow(
        remote="""
job run,stop,revert,scale,dispatch
run,stop
"""
    ),
    "packer": ProgramRow(remote="build"),
    "pulumi": ProgramRow(
        groups="",
        remote="""
cancel,destroy,import,refresh,rename,up,update ! --preview-only
stack init,rm,rename
state delete,move,rename,upgrade
""",
    ),
    "railway": ProgramRow(
        remote="""
delete,deploy,down,redeploy,up,add
variables + --set
"""
    ),
    "render": ProgramRow(remote="** create,delete,deploy,restart,update"),
    "s3cmd": ProgramRow(remote="put,del,rm,sync,mb,rb,mv,setacl"),
    "sam": ProgramRow(remote="delete,deploy,publish,sync"),
    "serverless sls": ProgramRow(remote="deploy,remove,rollback,invoke"),
    "skaffold": ProgramRow(remote="run,deploy,delete,apply"),
    "supabase": ProgramRow(
        remote="""
functions deploy,delete
db push,reset ! --local --dry-run
secrets set,unset
"""
    ),
    "terraform": ProgramRow(
        groups="state workspace", remote=_TERRAFORM_REMOTE, checks="lint: validate"
    ),
    "terragrunt tofu": ProgramRow(remote=_TERRAFORM_REMOTE),
    "vault": ProgramRow(
        remote="""
delete,write
kv delete,destroy,metadata,patch,put,rollback,undelete
"""
    ),
    "vercel": ProgramRow(
        groups="",
        remote="""
alias,bisect,certs,deploy,dns,domains,promote,redeploy,remove,rm,rollback,rolling-release
env add,rm,remove,update
**
not build,cache,dev,git,help,init,inspect,link,list,login,logout,logs,ls,open,project,pull,switch,teams,whoami
not env,dns,domains,certs,alias,rolling-release list,ls,pull,inspect
""",
    ),
    "wrangler": ProgramRow(
        groups="",
        remote="""
delete,deploy,publish,rollback
secret,kv,pages,r2,d1,queues,versions ** apply,bulk,create,delete,deploy,put,rollback,upload
""",
    ),
}
PROGRAMS = list_by_name(_ROWS)

import json, threading
from .conftest import Api
def cm(name, **data):
    return {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":name},"data":data}
def test_smoke(api: Api) -> None:
    P="/api/v1/namespaces/default/configmaps"
    for i in range(5):
        a=api.post(P, cm(f"a{i}", x="<1>")); assert a.status==201,a.body
    a=api.get(P+"?limit=2"); print(a.body); assert a.status==200
    c=a.json()["metadata"]["continue"]
    assert a.json()["metadata"]["remainingItemCount"]==3
    api.post(P, cm("a00"))
    b=api.get(P+"?limit=2&continue="+c); assert [i["metadata"]["name"] for i in b.json()["items"]]==["a2","a3"]
    rv=b.json()["metadata"]["resourceVersion"]
    s=api.stream(P+"?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
    for i in range(7): print(s.event())
    api.post(P, cm("z1"))
    print(s.event())
    api.delete(P+"/z1"); print(s.event())
    s2=api.stream(P+"?watch=1&resourceVersion="+rv)
    for i in range(3): print(s2.event())
    s3=api.stream(P+"?watch=1&resourceVersion=1"); print(s3.event(2)); print(s3.event(2))
    print(api.get(P+"?resourceVersion=99999999").body)
    print(api.get(P+"?limit=1&continue=xx*").body)
    t=api.stream(P+"?watch=1",{"accept":"application/json;as=Table;g=meta.k8s.io;v=v1"}); print(t.event()); print(t.event())
    s.close(); s2.close(); t.close()
    print(api.log)
